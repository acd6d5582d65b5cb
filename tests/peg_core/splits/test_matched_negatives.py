"""Non-links of the population of the links, against sets of networkx."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peg_core.errors import GraphTooSmall
from peg_core.graph.graph_store import GraphStore
from peg_core.splits.edge_split import TEST, TRAIN, split_by_time
from peg_core.splits.matched_negatives import AdmissibleNodes, MatchedNegatives, find_first_times


def grown(nodes, per_node, seed):
    """A graph that grows: edge, time; nodes have numbers at random, two share a time."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(nodes)
    edges = {}
    for node in range(1, nodes):
        for other in rng.choice(node, min(per_node, node), replace=False).tolist():
            edges[order[node], order[other]] = node // 2
    nxg = nx.Graph()
    nxg.add_nodes_from(range(nodes + 2))  # two without an edge
    nxg.add_edges_from((int(u), int(v), {"time": t}) for (u, v), t in edges.items())
    return nxg


def stored(nxg, to_store):
    graph = to_store(nxg)
    rows = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    pairs = zip(rows.tolist(), graph.indices.tolist(), strict=True)
    return graph, np.array([nxg.edges[pair]["time"] for pair in pairs])


def split_of(graph, times, seed=0):
    parts = np.zeros(len(graph.indices), np.uint8)
    keys = np.arange(graph.num_nodes)
    split_by_time(graph, keys, times, parts, valid=0.1, test=0.3, seed=seed)
    rows = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    chosen = (parts == TEST) & (rows < graph.indices)
    links = rows[chosen].astype(np.int64), graph.indices[chosen].astype(np.int64)
    return graph.filter_entries(parts == TRAIN), links


def draw(graph, times, train, links, *, seed=0):
    (found,) = MatchedNegatives(graph, times, train, seed).chunks(iter([links]))
    return found


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), nodes=st.integers(25, 60), per_node=st.integers(2, 5))
def test_each_link_keeps_an_end_and_the_other_was_there_by_then(to_store, seed, nodes, per_node):
    nxg = grown(nodes, per_node, seed)
    graph, times = stored(nxg, to_store)
    train, links = split_of(graph, times)
    found = draw(graph, times, train, links, seed=seed)
    since = {n: min((d["time"] for *_, d in nxg.edges(n, data=True)), default=None) for n in nxg}
    for link, pair in zip(zip(*links, strict=True), zip(*found, strict=True), strict=True):
        assert pair[0] < pair[1]
        assert not nxg.has_edge(*pair)
        kept = set(link) & set(pair)
        assert len(kept) == 1
        (drawn,) = set(pair) - kept
        assert since[drawn] is not None
        assert since[drawn] <= nxg.edges[link]["time"]


def test_as_many_non_links_as_links_have_a_cold_end(to_store):
    graph, times = stored(grown(600, 4, seed=1), to_store)
    train, links = split_of(graph, times)
    found = draw(graph, times, train, links)
    cold = train.degrees == 0
    shares = [np.mean(cold[pairs[0]] | cold[pairs[1]]) for pairs in (links, found)]
    assert shares[0] > 0.9
    assert shares[1] == pytest.approx(shares[0], abs=0.01)


def test_a_link_keeps_its_non_link_whatever_it_is_drawn_with(to_store):
    graph, times = stored(grown(200, 3, seed=2), to_store)
    train, links = split_of(graph, times)
    whole = np.stack(draw(graph, times, train, links, seed=5))
    pieces = ((links[0][n : n + 7], links[1][n : n + 7]) for n in range(0, len(links[0]), 7))
    apart = MatchedNegatives(graph, times, train, 5).chunks(pieces)
    np.testing.assert_array_equal(np.concatenate([np.stack(pair) for pair in apart], axis=1), whole)
    assert (np.stack(draw(graph, times, train, links, seed=6)) != whole).any()


def test_all_nodes_of_a_group_are_as_likely_and_no_other_is_drawn():
    groups, since = np.array([0, 1, 0, 0, 1, 0]), np.array([0, 0, 3, 9, 1, 2])
    ends, times = np.zeros(30_000, dtype=np.int64), np.full(30_000, 3)
    words = np.random.default_rng(0).integers(0, 2**64, len(ends), dtype=np.uint64)
    drawn = AdmissibleNodes(groups, since).draw(ends, times, words)
    counts = np.bincount(drawn, minlength=6)
    np.testing.assert_array_equal(counts > 0, [True, False, True, False, False, True])
    assert np.abs(counts[counts > 0] - 10_000).max() < 400


def test_without_times_every_node_was_there():
    graph = GraphStore.from_edges([0, 1, 2], [1, 2, 3], num_nodes=6)
    assert len(set(find_first_times(graph, None))) == 1
    train = graph.filter_entries(np.ones(6, bool))
    links = np.array([0] * 1), np.array([1])
    for seed in range(20):
        (low,), (high,) = draw(graph, None, train, links, seed=seed)
        assert (low, high) in {(0, 2), (0, 3), (1, 3)}  # 4 and 5 have no edge to train on


def test_where_the_group_has_nobody_any_node_that_was_there_serves(to_store):
    """Nodes 0 to 3 are all linked, 4 comes last and alone: nobody cold can replace it."""
    nxg = nx.complete_graph(4)
    nx.set_edge_attributes(nxg, 0, "time")
    nxg.add_edge(0, 4, time=1)
    graph, times = stored(nxg, to_store)
    train = to_store(nx.Graph(nx.complete_graph(4)))
    train = GraphStore.from_edges(*train.edges(), num_nodes=5)
    links = np.array([0]), np.array([4])
    for seed in range(8):
        (low,), (high,) = draw(graph, times, train, links, seed=seed)
        assert high == 4
        assert low in (1, 2, 3)


def test_a_complete_graph_has_no_non_link(to_store):
    graph = to_store(nx.complete_graph(4))
    with pytest.raises(GraphTooSmall, match="only 0"):
        draw(graph, None, graph, (np.array([0]), np.array([1])))
