"""Held-out links of real graphs, against gensim on the same walks' parameters.

Fewer walks than the defaults, for both: gensim takes its time. The whole comparison is
``benchmarks/walks.py``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from gensim.models import Word2Vec
from sklearn.metrics import roc_auc_score

from peg_core.encoding import DeepWalk
from peg_core.encoding.random_walks import WalkGraph, WalkRule, generate_walks
from peg_core.graph.graph_store import GraphStore

pytestmark = [pytest.mark.data, pytest.mark.slow]

WALKS, LENGTH = 4, 80


class HeldOut:
    """Cora without a tenth of its edges."""

    def __init__(self, folder: Path, seed: int) -> None:
        table = pq.read_table(folder / "edges.parquet", columns=["src", "dst"])
        source, target = table["src"].to_numpy(), table["dst"].to_numpy()
        nodes = pq.read_metadata(folder / "nodes.parquet").num_rows
        rng = np.random.default_rng(seed)
        hidden = np.zeros(len(source), dtype=np.bool_)
        hidden[rng.choice(len(source), len(source) // 10, replace=False)] = True
        self.graph = GraphStore.from_edges(source[~hidden], target[~hidden], num_nodes=nodes)
        whole = GraphStore.from_edges(source, target, num_nodes=nodes)
        pairs = rng.integers(0, nodes, (2, 4 * int(hidden.sum())))
        free = (pairs[0] != pairs[1]) & ~whole.contains(*pairs)
        links = np.stack([source[hidden], target[hidden]])
        self.pairs = np.concatenate([links, pairs[:, free][:, : int(hidden.sum())]], axis=1)
        self.truth = np.repeat([1, 0], int(hidden.sum()))

    def auc(self, positions: np.ndarray) -> float:
        unit = positions / np.maximum(np.linalg.norm(positions, axis=1, keepdims=True), 1e-12)
        scores = np.sum(unit[self.pairs[0]] * unit[self.pairs[1]], axis=1)
        return float(roc_auc_score(self.truth, scores))


@pytest.fixture(scope="module")
def held_out(data_folder: Path) -> HeldOut:
    return HeldOut(data_folder / "cora", seed=0)


@pytest.fixture(scope="module")
def gensim_auc(held_out: HeldOut) -> float:
    graph = held_out.graph
    order = np.random.default_rng(0)
    walks = WalkGraph.of(graph)
    corpus = []
    for number in range(WALKS):
        starts = order.permutation(graph.num_nodes)
        nodes = generate_walks(walks, starts, WalkRule(LENGTH), seed=0, number=number)
        corpus += [[str(node) for node in walk if node >= 0] for walk in nodes.tolist()]
    model = Word2Vec(
        corpus,
        vector_size=128,
        window=10,
        min_count=0,
        sg=1,
        negative=5,
        sample=0,
        epochs=1,
        workers=1,
        seed=0,
    )
    return held_out.auc(np.stack([model.wv[str(node)] for node in range(graph.num_nodes)]))


@pytest.mark.parametrize(
    ("parameters", "worse_by"),
    [
        ({"solver": "sgns", "walks": WALKS}, 0.01),
        ({"solver": "sgns", "walks": WALKS, "negatives": "shared"}, 0.02),
        ({"solver": "netmf"}, 0.0),
        ({"solver": "netmf", "propagate": False}, 0.0),
        ({"solver": "netsmf"}, 0.0),
        ({"solver": "netsmf", "propagate": False}, 0.0),
    ],
)
def test_links_are_found_as_well_as_by_gensim(held_out, gensim_auc, parameters, worse_by):
    found = held_out.auc(DeepWalk(**parameters).encode(held_out.graph, seed=0))
    assert found >= gensim_auc - worse_by
