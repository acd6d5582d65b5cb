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

from peg_core.encoding import DeepWalk, Node2Vec
from peg_core.encoding.walks.random_walks import WalkGraph, WalkRule, generate_walks
from peg_core.graph.graph_store import GraphStore

pytestmark = [pytest.mark.data, pytest.mark.slow]

LENGTH, SEEDS = 80, 3
# Walks per node: as few as still find links.
WALKS = {"cora": 3, "pubmed": 1, "twitch-pt": 3}


class HeldOut:
    """A graph without a tenth of its edges."""

    def __init__(self, folder: Path, seed: int) -> None:
        table = pq.read_table(folder / "edges.parquet", columns=["src", "dst"])
        source, target = table["src"].to_numpy(), table["dst"].to_numpy()
        nodes = pq.read_metadata(folder / "nodes.parquet").num_rows
        rng = np.random.default_rng(seed)
        hidden = np.zeros(len(source), dtype=np.bool_)
        hidden[rng.choice(len(source), len(source) // 10, replace=False)] = True
        self.seed = seed
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


@pytest.fixture(scope="module", params=WALKS)
def held_out(request, data_folder: Path) -> tuple[int, list[HeldOut]]:
    """Walks per node, and a graph without a tenth of its edges for every seed."""
    name = request.param
    return WALKS[name], [HeldOut(data_folder / name, seed) for seed in range(SEEDS)]


@pytest.fixture(scope="module")
def gensim_auc(held_out) -> float:
    walks, splits = held_out
    return float(np.mean([split.auc(gensim_positions(split, walks)) for split in splits]))


def gensim_positions(split: HeldOut, walks: int) -> np.ndarray:
    order = np.random.default_rng(split.seed)
    graph, corpus = WalkGraph.of(split.graph), []
    for number in range(walks):
        starts = order.permutation(split.graph.num_nodes)
        nodes = generate_walks(graph, starts, WalkRule(LENGTH), seed=split.seed, number=number)
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
        workers=2,
        seed=split.seed,
    )
    return np.stack([model.wv[str(node)] for node in range(split.graph.num_nodes)])


@pytest.mark.parametrize(
    ("parameters", "worse_by"),
    [
        ({"solver": "sgns"}, 0.01),
        ({"solver": "sgns", "negatives": "shared"}, 0.02),
        ({"solver": "netmf"}, 0.0),
        ({"solver": "netsmf"}, 0.0),
        ({"solver": "netsmf", "propagate": False}, 0.0),
    ],
    ids=str,
)
def test_links_are_found_as_well_as_by_gensim(held_out, gensim_auc, parameters, worse_by):
    walks, splits = held_out
    encoder = DeepWalk(**parameters, walks=walks)
    found = [split.auc(encoder.encode(split.graph, seed=split.seed)) for split in splits]
    assert np.mean(found) >= gensim_auc - worse_by


def test_walks_without_memory_are_those_of_deepwalk(held_out):
    walks, splits = held_out
    split = splits[0]
    plain = DeepWalk(solver="sgns", walks=walks).encode(split.graph, seed=0)
    second_order = Node2Vec(p=1, q=1, walks=walks).encode(split.graph, seed=0)
    assert split.auc(second_order) == pytest.approx(split.auc(plain), abs=0.02)
