import networkx as nx
import numpy as np
import scipy.sparse.csgraph
from hypothesis import given
from hypothesis import strategies as st

from peg_core.graph.components import connected_components
from peg_core.graph.graph_store import GraphStore


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.01, 0.03, 0.2]))
def test_labels_equal_scipys(to_store, seed, density):
    graph = to_store(nx.gnp_random_graph(80, density, seed=seed))
    count, labels = connected_components(graph)
    expected_count, expected = scipy.sparse.csgraph.connected_components(graph.adjacency())
    assert count == expected_count
    np.testing.assert_array_equal(labels, expected)


def test_a_long_path_in_scrambled_order_is_one_component():
    order = np.random.default_rng(0).permutation(20_000)
    graph = GraphStore.from_edges(order[:-1], order[1:], num_nodes=20_000)
    assert connected_components(graph)[0] == 1
