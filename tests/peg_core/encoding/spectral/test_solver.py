"""Every solver against dense linear algebra."""

from __future__ import annotations

import numpy as np
import pytest

from peg_core.encoding.spectral.eigengap import gaps
from peg_core.encoding.spectral.solver import SolverOptions, is_dense, solve_component
from peg_core.random_streams import random_stream
from tests.peg_core.encoding.conftest import CONNECTED, dense_laplacian, sine_of_largest_angle

WITHOUT_GAP = ("star", "complete")
WITH_GAP = tuple(name for name in CONNECTED if name not in WITHOUT_GAP)


def solve(graph, count, tolerance, solver="krylov_schur", seed=0):
    assert not is_dense(graph.num_nodes, count + 1)
    return solve_component(
        graph,
        wanted=count,
        extra=1,
        options=SolverOptions(solver, tolerance),
        stream=random_stream(seed=seed, purpose="test"),
    )


@pytest.mark.parametrize("solver", ["krylov_schur", "chebyshev", "arpack"])
@pytest.mark.parametrize("name", WITH_GAP)
def test_subspace_at_a_gap_equals_that_of_dense_eigh(name, solver, connected_graphs, dense_spectra):
    if (name, solver) == ("cycle", "arpack"):
        pytest.skip("ARPACK misses copies of double eigenvalues")
    values, vectors = dense_spectra[name]
    count = 8 + int(np.argmax(gaps(values[1:])[7:24]))
    gap = values[count + 1] - values[count]
    pairs = solve(connected_graphs[name], count, tolerance=2e-4 * gap, solver=solver)
    found = pairs.vectors[:, :count]
    assert sine_of_largest_angle(vectors[:, 1 : count + 1], found) <= 1e-3
    np.testing.assert_allclose(pairs.values[:count], values[1 : count + 1], atol=1e-5)
    np.testing.assert_allclose(pairs.values[count], values[count + 1], atol=1e-3)


@pytest.mark.parametrize("name", WITHOUT_GAP)
def test_eigenvalue_of_nearly_full_multiplicity_is_found(name, connected_graphs, dense_spectra):
    graph = connected_graphs[name]
    pairs = solve(graph, 24, tolerance=1e-4)
    np.testing.assert_allclose(pairs.values, dense_spectra[name][0][1:26], atol=1e-5)
    np.testing.assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(25), atol=1e-5)


@pytest.mark.parametrize("tolerance", [1e-3, 1e-8])
@pytest.mark.parametrize("name", CONNECTED)
def test_reported_residuals_are_the_true_ones(name, tolerance, connected_graphs):
    graph = connected_graphs[name]
    pairs = solve(graph, 16, tolerance=tolerance)
    vectors = pairs.vectors.astype(np.float64)
    image = dense_laplacian(graph) @ vectors
    true = np.linalg.norm(image - vectors * pairs.values, axis=0)
    np.testing.assert_allclose(pairs.residuals, true, atol=2e-6 if tolerance > 1e-6 else 1e-13)
    assert true[:16].max() <= tolerance * 1.01


def test_bipartite_component_has_eigenvalue_two_that_is_not_mistaken(connected_graphs):
    pairs = solve(connected_graphs["bipartite"], 16, tolerance=1e-3)
    assert pairs.values.max() < 1


def test_vectors_are_orthonormal_and_orthogonal_to_the_null_vector(connected_graphs):
    graph = connected_graphs["weighted"]
    pairs = solve(graph, 16, tolerance=1e-3)
    root = np.sqrt(graph.weighted_degrees)
    np.testing.assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(17), atol=5e-6)
    np.testing.assert_allclose(root @ pairs.vectors / np.linalg.norm(root), 0, atol=5e-6)


def test_warm_start_from_the_solution_needs_few_applications(connected_graphs):
    graph = connected_graphs["blocks"]
    cold = solve(graph, 9, tolerance=1e-4)
    warm = solve_component(
        graph,
        wanted=9,
        extra=1,
        options=SolverOptions("auto", 1e-3),
        stream=random_stream(seed=1, purpose="test"),
        start=cold.vectors,
    )
    assert warm.solver == "refined start"
    assert warm.applications * 2 < cold.applications
    assert sine_of_largest_angle(cold.vectors[:, :9], warm.vectors[:, :9]) < 1e-2


def test_start_without_a_gap_falls_back_to_a_cold_solve(connected_graphs, dense_spectra):
    graph = connected_graphs["random"]
    start = np.random.default_rng(0).standard_normal((graph.num_nodes, 20))
    pairs = solve_component(
        graph,
        wanted=20,
        extra=1,
        options=SolverOptions("auto", 1e-4),
        stream=random_stream(seed=1, purpose="test"),
        start=start,
    )
    assert pairs.solver == "krylov_schur"
    np.testing.assert_allclose(pairs.values[:20], dense_spectra["random"][0][1:21], atol=1e-5)
