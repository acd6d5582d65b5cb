"""Starting vectors for nodes that an earlier encoding did not know."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from peg_core.encoding.compare.alignment import subspace_angles
from peg_core.encoding.laplacian_eigenmaps import LaplacianEigenmaps
from peg_core.encoding.spectral.solver import normalised_laplacian
from peg_core.encoding.spectral.warm_start import (
    start_vectors,
    vectors_to_keep,
    was_refined,
    with_next_eigenvalue,
)
from peg_core.errors import ArtifactMismatch
from peg_core.generators.random_graphs import StochasticBlockModel
from peg_core.graph.graph_store import GraphStore
from tests.peg_core.encoding.conftest import store


def test_new_nodes_get_the_mean_of_their_neighbours():
    graph = store(nx.path_graph(5))  # degrees 1 2 2 2 1
    earlier = np.array([[1.0], [2.0], [9.0], [4.0], [5.0]])
    known = np.array([True, True, False, True, True])
    found = start_vectors(graph, earlier, known)
    smooth = (2 / np.sqrt(2) + 4 / np.sqrt(2)) / 2
    np.testing.assert_allclose(found[2, 0], smooth * np.sqrt(2), rtol=1e-6)
    np.testing.assert_allclose(found[known], earlier[known])


def test_nodes_behind_new_nodes_are_reached_by_later_sweeps():
    graph = store(nx.path_graph(4))
    known = np.array([True, False, False, False])
    assert (start_vectors(graph, np.ones((4, 2)), known) != 0).all()


def test_nodes_that_no_known_node_reaches_stay_at_zero():
    graph = store(nx.disjoint_union(nx.path_graph(3), nx.path_graph(2)))
    known = np.array([True, True, True, False, False])
    assert (start_vectors(graph, np.ones((5, 2)), known)[3:] == 0).all()


def test_rows_must_match_the_graph():
    with pytest.raises(ArtifactMismatch, match="found 4 rows"):
        start_vectors(store(nx.path_graph(3)), np.ones((4, 2)))


def grown_blocks(blocks):
    """1,500 nodes, then 2 % more edges and two more nodes."""

    def ends(edges, seed):
        pieces = list(StochasticBlockModel(1_500, edges, blocks=blocks).chunks(seed=seed))
        return [np.concatenate([getattr(p, side) for p in pieces]) for side in ("source", "target")]

    old, new = ends(15_000, 0), ends(300, 1)
    source = np.concatenate([old[0], new[0], [1_500, 1_500, 1_501]])
    target = np.concatenate([old[1], new[1], [0, blocks, 1_500]])
    return (
        GraphStore.from_edges(*old, num_nodes=1_500),
        GraphStore.from_edges(source, target, num_nodes=1_502),
    )


def warm_and_cold(blocks, dimensions):
    before, after = grown_blocks(blocks)
    encoder = LaplacianEigenmaps(dimensions=dimensions)
    earlier = np.zeros((after.num_nodes, dimensions), dtype=np.float32)
    earlier[:1_500] = vectors_to_keep(encoder.find_spectrum(before, seed=0))
    start = start_vectors(after, earlier, np.arange(after.num_nodes) < 1_500)
    warm = encoder.find_spectrum(after, seed=0, start=start)
    return warm, encoder.find_spectrum(after, seed=0), after


def test_with_a_gap_a_warm_start_needs_fewer_products_and_finds_the_same_space():
    warm, cold, after = warm_and_cold(blocks=11, dimensions=10)
    assert was_refined(warm)
    completed = with_next_eigenvalue(after, warm, seed=0)
    assert warm.applications < completed.applications < cold.applications
    assert subspace_angles(warm.vectors, cold.vectors).max() < 0.02
    exact = np.linalg.eigvalsh(normalised_laplacian(after).toarray())[1:12]
    np.testing.assert_allclose(completed.eigenvalues[:10], exact[:10], atol=1e-4)
    assert exact[10] - 1e-6 <= completed.eigenvalues[10] <= 1.05 * exact[10]


def test_without_a_gap_the_start_is_dropped_and_the_answer_is_right():
    warm, cold, _ = warm_and_cold(blocks=11, dimensions=30)
    assert not was_refined(warm)
    np.testing.assert_allclose(warm.eigenvalues, cold.eigenvalues, atol=1e-3)


def test_null_vectors_are_not_kept():
    graph = store(nx.disjoint_union(nx.path_graph(9), nx.path_graph(5)))
    encoder = LaplacianEigenmaps(dimensions=5, preset="faithful")
    spectrum = encoder.find_spectrum(graph, seed=0)
    np.testing.assert_array_equal(vectors_to_keep(spectrum), spectrum.vectors[:, 2:])
