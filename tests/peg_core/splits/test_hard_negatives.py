import networkx as nx
import numpy as np
import pytest

from peg_core.graph.graph_store import GraphStore
from peg_core.splits.hard_negatives import NO_NODE, HardNegatives


@pytest.fixture(scope="module")
def graphs(to_store):
    """All known edges, and the nine tenths that train."""
    known = to_store(nx.gnm_random_graph(150, 600, seed=1))
    source, target = known.edges()
    keep = np.arange(len(source)) % 10 != 0
    return known, GraphStore.from_edges(source[keep], target[keep], num_nodes=150)


def sampler(graphs, **settings):
    known, train = graphs
    return HardNegatives(known, train, **{"features": None, "count": 20, "seed": 5, **settings})


def test_no_known_link_of_any_part_is_a_negative(graphs):
    known, _ = graphs
    anchors = np.arange(150)
    found = sampler(graphs).sample(anchors)
    assert found.shape == (150, 20)
    assert (found >= 0).all()
    for anchor, row in zip(anchors, found, strict=True):
        assert len(set(row.tolist())) == 20
        assert anchor not in row
        assert not known.contains(np.full(20, anchor), row).any()


def test_negatives_share_more_neighbours_than_random_pairs(graphs):
    _, train = graphs
    anchors = np.arange(150)
    found = sampler(graphs).sample(anchors)
    two_steps = (train.adjacency() @ train.adjacency()).toarray()
    np.fill_diagonal(two_steps, 0)
    assert two_steps[anchors[:, None], found].mean() > 3 * two_steps.mean()


def test_the_hardest_node_is_first_by_one_of_the_heuristics(graphs):
    """By dense matrices: the best free node by some heuristic leads every list."""
    known, train = graphs
    adjacency = train.adjacency(np.float64).toarray()
    degrees = adjacency.sum(axis=1)
    features = np.random.default_rng(0).normal(size=(150, 6))
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    walk = adjacency / np.maximum(degrees, 1)[:, None]
    scores = [
        adjacency @ adjacency,
        (adjacency / np.maximum(degrees, 1)) @ adjacency,
        np.linalg.inv(np.eye(150) - 0.85 * walk),
        unit @ unit.T,
    ]
    taken = known.adjacency().toarray().astype(bool) | np.eye(150, dtype=bool)
    found = sampler(graphs, features=features).sample(np.arange(150))
    for anchor in range(150):
        best = set()
        for score in scores:
            free = np.where(taken[anchor], -np.inf, score[anchor])
            best |= set(np.flatnonzero(free > free.max() - 1e-4).tolist())
        assert found[anchor, 0] in best


def test_features_bring_alike_nodes_in(graphs):
    features = np.zeros((150, 2))
    features[:, 0] = 1
    features[[3, 140]] = [0, 1]
    found = sampler(graphs, features=features, count=5).sample(np.array([3]))
    assert 140 in found


def test_the_result_does_not_depend_on_how_anchors_are_cut(graphs):
    whole = sampler(graphs).sample(np.arange(40))
    parts = [sampler(graphs).sample(np.arange(a, a + 10)) for a in range(0, 40, 10)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))
    assert not np.array_equal(whole, sampler(graphs, seed=6).sample(np.arange(40)))


def test_rows_end_where_a_node_has_no_more_strangers(to_store):
    star = to_store(nx.star_graph(6))
    found = HardNegatives(star, star, None, count=8, seed=0).sample(np.array([0, 1]))
    assert (found[0] == NO_NODE).all()
    assert sorted(found[1].tolist()) == [NO_NODE] * 3 + [2, 3, 4, 5, 6]


def test_an_isolated_node_gets_random_strangers(to_store):
    graph = to_store(nx.disjoint_union(nx.complete_graph(9), nx.empty_graph(40)))
    found = HardNegatives(graph, graph, None, count=6, seed=0).sample(np.array([20]))
    assert len(set(found[0].tolist())) == 6
    assert 20 not in found
