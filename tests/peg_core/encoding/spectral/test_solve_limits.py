"""Solves that end: p inside a cluster of eigenvalues, and budgets."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from peg_core.encoding.laplacian_eigenmaps import LaplacianEigenmaps
from peg_core.encoding.spectral import solve_limits, solver
from peg_core.graph.graph_store import GraphStore
from tests.peg_core.encoding.conftest import dense_laplacian

COPIES, SIZE, DIMENSIONS = 150, 8, 10


@pytest.fixture
def equal_blocks(monkeypatch):
    """Copies of one block that meet in hubs: more equal eigenvalues than a basis has columns."""
    monkeypatch.setattr(solve_limits, "LARGE_NODES", 1_000)
    block = np.array(nx.complete_graph(SIZE).edges())
    inside = (np.arange(COPIES)[:, None, None] * SIZE + block).reshape(-1, 2)
    nodes = np.arange(COPIES * SIZE)
    across = np.stack([nodes, COPIES * SIZE + nodes % SIZE], axis=1)
    ends = np.concatenate([inside, across]).T
    jitter = 1 + 0.01 * np.random.default_rng(0).standard_normal(COPIES)
    weights = np.concatenate([np.ones(len(inside)), jitter[nodes // SIZE]])
    return GraphStore.from_edges(*ends, num_nodes=(COPIES + 1) * SIZE, weights=weights)


@pytest.mark.parametrize("solver_name", ["auto", "chebyshev"])
def test_inside_a_cluster_any_of_its_vectors_are_accepted(equal_blocks, solver_name):
    values, vectors = np.linalg.eigh(dense_laplacian(equal_blocks))
    cluster = slice(1, COPIES)  # one combination of the copies is the null vector
    assert values[COPIES - 1] - values[1] < 0.01 < 0.1 < values[COPIES] - values[COPIES - 1]
    encoder = LaplacianEigenmaps(dimensions=DIMENSIONS, solver=solver_name)
    spectrum = encoder.find_spectrum(equal_blocks, seed=0)
    found = spectrum.vectors.astype(np.float64)
    np.testing.assert_allclose(found.T @ found, np.eye(DIMENSIONS), atol=1e-4)
    outside = found - vectors[:, cluster] @ (vectors[:, cluster].T @ found)
    assert np.linalg.norm(outside, axis=0).max() < 0.05
    assert (np.abs(spectrum.eigenvalues - values[COPIES // 2]) < 0.01).all()
    assert spectrum.residuals.max() <= 5e-3
    warnings = encoder.describe(spectrum)["warnings"]
    assert len(warnings) == 1
    assert "splits an eigenspace" in warnings[0]
    assert f"largest residual {spectrum.residuals.max():.1e}" in warnings[0]


@pytest.mark.parametrize("solver_name", ["auto", "chebyshev"])
def test_a_spent_budget_gives_the_result_so_far_and_one_warning(
    connected_graphs, monkeypatch, solver_name
):
    monkeypatch.setattr(solver, "application_budget", lambda *_: 700)
    monkeypatch.setattr(solve_limits, "LARGE_NODES", 100)
    graph = connected_graphs["grid"]
    encoder = LaplacianEigenmaps(dimensions=12, tolerance=1e-5, solver=solver_name)
    spectrum = encoder.find_spectrum(graph, seed=0)
    assert spectrum.applications < 10_000
    vectors = spectrum.vectors.astype(np.float64)
    image = dense_laplacian(graph) @ vectors
    true = np.linalg.norm(image - vectors * spectrum.eigenvalues[:12], axis=0)
    np.testing.assert_allclose(spectrum.residuals, true, atol=2e-6)
    assert true.max() > 1e-5
    (warning,) = [w for w in encoder.describe(spectrum)["warnings"] if "tolerance" in w]
    assert f"{spectrum.residuals.max():.1e}" in warning


def test_small_graphs_keep_their_limits():
    assert solve_limits.application_budget(50_000, 129) == 10 * (
        solve_limits.application_budget(50_001, 129)
    )
