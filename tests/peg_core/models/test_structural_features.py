import networkx as nx
import numpy as np

from peg_core.graph.components import connected_components
from peg_core.models.structural_features import structural_features


def features_of(graph, source, target):
    return structural_features(graph, source, target, connected_components(graph)[1])


def test_features_of_a_link_are_those_of_the_graph_without_it(to_store):
    nxg = nx.gnp_random_graph(30, 0.3, seed=2)
    for u, v in list(nxg.edges())[:20]:
        without = nxg.copy()
        without.remove_edge(u, v)
        pair = (np.array([u]), np.array([v]))
        found = features_of(to_store(nxg), *pair)
        np.testing.assert_allclose(found, features_of(to_store(without), *pair))


def test_features_are_symmetric(to_store):
    graph = to_store(nx.gnp_random_graph(30, 0.3, seed=2))
    source, target = np.random.default_rng(0).integers(0, 30, size=(2, 100))
    np.testing.assert_array_equal(
        features_of(graph, source, target), features_of(graph, target, source)
    )


def test_last_column_says_whether_a_path_joins_the_pair(to_store):
    nxg = nx.gnp_random_graph(40, 0.03, seed=5)
    pairs = [(u, v) for u in range(40) for v in range(40) if u != v and not nxg.has_edge(u, v)]
    found = features_of(to_store(nxg), *np.array(pairs).T)[:, -1]
    np.testing.assert_array_equal(found, [nx.has_path(nxg, u, v) for u, v in pairs])


def test_a_link_does_not_join_a_node_that_has_no_other(to_store):
    pendant = to_store(nx.path_graph(3))
    found = features_of(pendant, np.array([0]), np.array([1]))
    assert found[0, -1] == 0
