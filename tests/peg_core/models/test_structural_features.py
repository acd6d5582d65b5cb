import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from peg_core.models.structural_features import neighborhood_overlap, structural_features


@given(st.integers(0, 10**6), st.sampled_from([0.02, 0.2, 0.7]))
def test_overlap_equals_networkx(to_store, seed, density):
    nxg = nx.gnp_random_graph(30, density, seed=seed)
    pairs = [(u, v) for u in range(30) for v in range(30) if u != v]
    source, target = np.array(pairs).T
    found = neighborhood_overlap(to_store(nxg), source, target)
    common = [len(list(nx.common_neighbors(nxg, u, v))) for u, v in pairs]
    adamic = [score for *_, score in nx.adamic_adar_index(nxg, pairs)]
    allocation = [score for *_, score in nx.resource_allocation_index(nxg, pairs)]
    np.testing.assert_allclose(found, np.array([common, adamic, allocation]).T, atol=1e-12)


def test_features_of_a_link_are_those_of_the_graph_without_it(to_store):
    nxg = nx.gnp_random_graph(30, 0.3, seed=2)
    for u, v in list(nxg.edges())[:20]:
        without = nxg.copy()
        without.remove_edge(u, v)
        pair = (np.array([u]), np.array([v]))
        degrees = structural_features(to_store(nxg), *pair)[0, 3:]
        np.testing.assert_allclose(degrees, structural_features(to_store(without), *pair)[0, 3:])


def test_features_are_symmetric(to_store):
    graph = to_store(nx.gnp_random_graph(30, 0.3, seed=2))
    source, target = np.random.default_rng(0).integers(0, 30, size=(2, 100))
    np.testing.assert_array_equal(
        structural_features(graph, source, target), structural_features(graph, target, source)
    )
