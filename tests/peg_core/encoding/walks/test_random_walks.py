"""Walks against the transition probabilities by their definition."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from peg_core.encoding.walks.alias_table import alias_table
from peg_core.encoding.walks.random_walks import NO_NODE, WalkGraph, WalkRule, generate_walks
from peg_core.graph.graph_store import GraphStore

WEIGHTED = GraphStore.from_edges(
    [0, 0, 0, 1, 2, 3], [1, 2, 3, 2, 3, 4], num_nodes=6, weights=[1.0, 2.0, 5.0, 0.5, 3.0, 1.0]
)


@st.composite
def graphs(draw: st.DrawFn) -> GraphStore:
    nodes = draw(st.integers(2, 12))
    ends = draw(st.lists(st.tuples(*[st.integers(0, nodes - 1)] * 2), max_size=30))
    pairs = np.array(ends, dtype=np.int64).reshape(-1, 2)
    weights = draw(st.sampled_from([None, np.linspace(0.5, 3, len(pairs))]))
    return GraphStore.from_edges(pairs[:, 0], pairs[:, 1], num_nodes=nodes, weights=weights)


@given(graph=graphs(), back=st.sampled_from([0.2, 1.0, 4.0]), away=st.sampled_from([0.25, 1.0]))
def test_every_step_is_an_edge_and_isolated_nodes_stay(graph, back, away):
    rule = WalkRule(length=7, back=back, away=away)
    walks = generate_walks(WalkGraph.of(graph), np.arange(graph.num_nodes), rule, seed=1)
    for node, walk in enumerate(walks.tolist()):
        assert walk[0] == node
        if len(graph.neighbours(node)) == 0:
            assert walk[1:] == [NO_NODE] * 6
        else:
            assert all(second in graph.neighbours(first) for first, second in pairwise(walk))


@given(weights=st.lists(st.floats(0, 100), min_size=1, max_size=40))
def test_an_alias_table_holds_the_shares(weights):
    if sum(weights) < 1e-3:
        weights[0] = 1.0
    table = alias_table(np.array(weights))
    share = np.zeros(len(weights))
    for index, (stays, other) in enumerate(table.tolist()):
        share[index] += stays / 2**32
        share[other] += 1 - stays / 2**32
    expected = np.array(weights) / sum(weights)
    np.testing.assert_allclose(share / len(weights), expected, atol=1e-8)


@pytest.mark.parametrize("graph", [WEIGHTED, GraphStore(WEIGHTED.indptr, WEIGHTED.indices)])
def test_first_order_steps_follow_the_weights(graph):
    walks, rule = WalkGraph.of(graph), WalkRule(2)
    passes = [generate_walks(walks, np.arange(5), rule, seed=0, number=i) for i in range(4_000)]
    steps = np.concatenate(passes)
    counts = np.zeros((5, 6))
    np.add.at(counts, (steps[:, 0], steps[:, 1]), 1)
    adjacency = graph.adjacency(np.float64).toarray()[:5]
    expected = adjacency / adjacency.sum(axis=1, keepdims=True)
    # four standard deviations of a share among 4,000
    np.testing.assert_allclose(counts / 4_000, expected, atol=4 * 0.5 / np.sqrt(4_000))


@pytest.mark.parametrize(("p", "q"), [(0.25, 4.0), (4.0, 0.5), (1.0, 2.0)])
def test_second_order_steps_follow_node2vec(p, q):
    graph = WEIGHTED
    adjacency = graph.adjacency(np.float64).toarray()
    rule = WalkRule(600, back=1 / p, away=1 / q)
    counts = np.zeros((6, 6, 6))
    for number in range(150):
        walks = generate_walks(WalkGraph.of(graph), np.arange(5), rule, seed=2, number=number)
        np.add.at(counts, (walks[:, :-2], walks[:, 1:-1], walks[:, 2:]), 1)
    for before, node in zip(*np.nonzero(adjacency), strict=True):
        bias = np.where(adjacency[before] > 0, 1.0, 1 / q)
        bias[before] = 1 / p
        expected = adjacency[node] * bias
        expected /= expected.sum()
        total = counts[before, node].sum()
        error = 5 * 0.5 / np.sqrt(total)
        np.testing.assert_allclose(counts[before, node] / total, expected, atol=error)


@pytest.mark.parametrize("rule", [WalkRule(40), WalkRule(40, back=3.0, away=0.5)])
def test_walks_depend_on_their_start_alone(rule):
    """Not on the threads, nor on the ranges that are walked together."""
    graph = nx.barabasi_albert_graph(6_000, 3, seed=1)
    ends = np.array(graph.edges())
    store = WalkGraph.of(GraphStore.from_edges(ends[:, 0], ends[:, 1], num_nodes=6_000))
    starts = np.arange(6_000)
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        alone = generate_walks(store, starts, rule, seed=5)
        numba.set_num_threads(min(2, numba.config.NUMBA_NUM_THREADS))
        together = generate_walks(store, starts, rule, seed=5)
    finally:
        numba.set_num_threads(before)
    np.testing.assert_array_equal(alone, together)
    reversed_part = generate_walks(store, starts[4_000:900:-1], rule, seed=5)
    np.testing.assert_array_equal(alone[4_000:900:-1], reversed_part)
    assert (alone != generate_walks(store, starts, rule, seed=5, number=1)).any()
    assert (alone != generate_walks(store, starts, rule, seed=6)).any()
