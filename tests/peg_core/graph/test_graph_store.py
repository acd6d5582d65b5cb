import pickle
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from peg_core.errors import ArtifactMismatch, PegError
from peg_core.graph.graph_store import GraphStore

edge_lists = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        st.just(n), st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=40)
    )
)


def dense(num_nodes, edges, weights):
    matrix = np.zeros((num_nodes, num_nodes))
    for (source, target), weight in zip(edges, weights, strict=True):
        if source != target:
            matrix[source, target] += weight
            matrix[target, source] += weight
    return matrix


@given(edge_lists)
def test_store_equals_a_dense_matrix_built_edge_by_edge(case):
    num_nodes, edges = case
    ends = np.array(edges, dtype=np.int64).reshape(-1, 2)
    weights = np.arange(1, len(edges) + 1, dtype=np.float64)
    graph = GraphStore.from_edges(ends[:, 0], ends[:, 1], num_nodes=num_nodes, weights=weights)
    expected = dense(num_nodes, edges, weights)
    np.testing.assert_allclose(graph.adjacency(np.float64).toarray(), expected)
    np.testing.assert_array_equal(graph.degrees, (expected > 0).sum(axis=1))
    np.testing.assert_allclose(graph.weighted_degrees, expected.sum(axis=1))
    assert graph.num_edges == (np.triu(expected) > 0).sum()
    for node in range(num_nodes):
        np.testing.assert_array_equal(graph.neighbours(node), np.flatnonzero(expected[node]))


@given(edge_lists)
def test_contains_agrees_with_the_matrix_for_every_pair(case):
    num_nodes, edges = case
    ends = np.array(edges, dtype=np.int64).reshape(-1, 2)
    graph = GraphStore.from_edges(ends[:, 0], ends[:, 1], num_nodes=num_nodes)
    source, target = (a.ravel() for a in np.indices((num_nodes, num_nodes)))
    expected = dense(num_nodes, edges, np.ones(len(edges))) > 0
    np.testing.assert_array_equal(graph.contains(source, target), expected.ravel())


def test_edges_list_every_edge_once_in_order(to_store):
    nxg = nx.gnm_random_graph(40, 120, seed=2)
    source, target = to_store(nxg).edges()
    assert list(zip(source, target, strict=True)) == sorted(tuple(sorted(e)) for e in nxg.edges())


def test_opened_arrays_are_the_saved_ones(tmp_path):
    graph = GraphStore.from_edges([0, 1], [1, 2], num_nodes=4, weights=[0.5, 2.0])
    graph.save(tmp_path)
    again = GraphStore.open(tmp_path)
    assert isinstance(again.indices, np.memmap)
    np.testing.assert_array_equal(again.indptr, [0, 1, 3, 4, 4])
    np.testing.assert_array_equal(again.indices, [1, 0, 2, 1])
    np.testing.assert_array_equal(again.weights, np.float32([0.5, 0.5, 2, 2]))


def test_slices_put_together_are_the_whole(two_communities):
    parts = [two_communities.csr_slice(a, b) for a, b in two_communities.balanced_ranges(4)]
    np.testing.assert_array_equal(
        np.concatenate([part.indices for part in parts]), two_communities.indices
    )
    np.testing.assert_array_equal(
        np.concatenate([np.diff(part.indptr) for part in parts]), two_communities.degrees
    )


def test_ranges_of_a_star_do_not_cut_the_hub_and_cover_all_nodes(to_store):
    graph = to_store(nx.star_graph(100))
    ranges = graph.balanced_ranges(4)
    assert ranges[0][0] == 0
    assert ranges[-1][1] == 101
    assert all(a[1] == b[0] for a, b in pairwise(ranges))


def test_filtering_entries_equals_removing_the_edges(to_store):
    nxg = nx.gnm_random_graph(30, 90, seed=4)
    graph = to_store(nxg)
    rows = np.repeat(np.arange(30), graph.degrees)
    keep = (rows + graph.indices) % 3 != 0
    nxg.remove_edges_from([(u, v) for u, v in list(nxg.edges()) if (u + v) % 3 == 0])
    expected = scipy.sparse.csr_array(nx.to_scipy_sparse_array(nxg, nodelist=range(30)))
    assert (graph.filter_entries(keep).adjacency() != expected).nnz == 0


def test_indices_outside_the_nodes_are_refused():
    with pytest.raises(PegError, match=r"must lie in 0 .. 2, found 0 .. 3"):
        GraphStore.from_edges([0, 3], [1, 2], num_nodes=3)


def test_a_folder_that_holds_no_graph_is_refused(tmp_path):
    with pytest.raises(PegError, match="is not a graph store"):
        GraphStore.open(tmp_path)


def test_arrays_of_different_graphs_are_refused(tmp_path):
    GraphStore.from_edges([0, 1], [1, 2], num_nodes=3).save(tmp_path)
    np.save(tmp_path / "indices.npy", np.zeros(7, dtype=np.int32))
    with pytest.raises(ArtifactMismatch, match="found 7 entries, needed 4"):
        GraphStore.open(tmp_path)


def test_a_store_is_never_pickled(two_communities):
    with pytest.raises(TypeError, match="opened by path"):
        pickle.dumps(two_communities)
