"""The best new pairs, beside a plain sort of all of them."""

from __future__ import annotations

import networkx as nx
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.graph_ids import GraphIds, KindIds
from peg_core.graph.ids.node_ids import NodeIds
from peg_core.inference.top_links import top_links

NODES = 40


@pytest.fixture(scope="module")
def graph():
    return nx.gnm_random_graph(NODES, 300, seed=4)


@pytest.fixture(scope="module")
def ids():
    return GraphIds([KindIds(NodeIds(pa.array([f"n{node:02}" for node in range(NODES)])))])


@pytest.fixture(scope="module")
def scored():
    """Every pair in both orders, itself too; links score high, some have no score."""
    stream = np.random.default_rng(2)
    source, target = np.indices((NODES, NODES)).reshape(2, -1)
    order = stream.permutation(len(source))
    frame = pl.DataFrame(
        {
            "a": [f"n{node:02}" for node in source[order]],
            "b": [f"n{node:02}" for node in target[order]],
            "score": stream.permutation(len(source)) / len(source),
        }
    )
    unknown = pl.DataFrame({"a": ["n01"], "b": ["nobody"], "score": [2.0]})
    missing = pl.when(pl.col("score") < 0.1).then(None).otherwise("score").alias("score")
    return pl.concat([frame, unknown]).with_columns(missing)


@pytest.mark.parametrize("count", [1, 7, 2000])
def test_new_pairs_come_once_the_best_first(graph, ids, scored, count):
    store = GraphStore.from_edges(*np.array(graph.edges).T, num_nodes=NODES)
    found = top_links(scored.lazy(), store, ids, count=count)
    expected: dict[frozenset[str], tuple[str, str, float]] = {}
    for a, b, score in scored.sort("score", descending=True, nulls_last=True).iter_rows():
        pair = frozenset((a, b))
        known = len(pair) == 2 and score is not None and b != "nobody"
        if known and pair not in expected and not graph.has_edge(int(a[1:]), int(b[1:])):
            expected[pair] = (a, b, score)
    wanted = list(expected.values())[:count]
    rows = zip(found.names, found.scores.tolist(), strict=True)
    assert [(*names, score) for names, score in rows] == wanted
    common = [len(set(graph[int(a[1:])]) & set(graph[int(b[1:])])) for a, b, _ in wanted]
    assert found.common_neighbours.tolist() == common
    assert [f"n{node:02}" for node in found.source] == [a for a, _, _ in wanted]


def test_candidates_that_are_all_links_leave_nothing(graph, ids):
    store = GraphStore.from_edges(*np.array(graph.edges).T, num_nodes=NODES)
    links = pl.DataFrame(
        [{"src": f"n{u:02}", "dst": f"n{v:02}", "score": 0.5} for u, v in graph.edges]
    )
    assert top_links(links.lazy(), store, ids, count=3).names == []
