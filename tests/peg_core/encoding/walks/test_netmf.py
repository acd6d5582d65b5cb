"""Exact and sampled matrices, their factorisation and smoothing, against dense numpy."""

from __future__ import annotations

import networkx as nx
import numba
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

from peg_core.encoding.walks.netmf import exact_matrix
from peg_core.encoding.walks.netsmf import row_factors, sample_rows, sampled_matrix
from peg_core.encoding.walks.randomised_svd import SparseMatrix, leading_eigenpairs
from peg_core.encoding.walks.spectral_propagation import propagate
from peg_core.graph.graph_store import GraphStore
from peg_core.random_streams import random_stream


def dense(matrix: SparseMatrix) -> np.ndarray:
    shape = (matrix.num_rows, matrix.num_rows)
    return scipy.sparse.csr_array((matrix.values, matrix.indices, matrix.indptr), shape).toarray()


def sparse(matrix: np.ndarray) -> SparseMatrix:
    rows = scipy.sparse.csr_array(matrix.astype(np.float32))
    return SparseMatrix(rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data)


def mean_of_powers(graph: GraphStore, window: int) -> np.ndarray:
    """``sum_r D P^r / window``; isolated nodes have zero rows."""
    adjacency = graph.adjacency(np.float64).toarray()
    degrees = adjacency.sum(axis=1)
    steps = adjacency / np.where(degrees > 0, degrees, 1)[:, None]
    powers = [np.linalg.matrix_power(steps, r) for r in range(1, window + 1)]
    return degrees[:, None] * sum(powers) / window


def truncated_logarithm(graph: GraphStore, window: int, negatives: int) -> np.ndarray:
    degrees = graph.weighted_degrees
    safe = np.where(degrees > 0, degrees, 1)
    scale = degrees.sum() / negatives
    ratio = scale * mean_of_powers(graph, window) / np.outer(safe, safe)
    return np.log(np.maximum(ratio, 1))


@pytest.fixture(params=["plain", "weighted"])
def graph(request) -> GraphStore:
    source, target = np.array(nx.barabasi_albert_graph(70, 2, seed=3).edges()).T
    weights = np.random.default_rng(0).uniform(0.2, 4, len(source))
    chosen = None if request.param == "plain" else weights
    return GraphStore.from_edges(source, target, num_nodes=72, weights=chosen)  # two isolated


@pytest.mark.parametrize(("window", "negatives"), [(1, 1), (5, 1), (10, 3)])
def test_the_exact_matrix_is_netmf(graph, window, negatives):
    found = exact_matrix(graph, window=window, negatives=negatives)
    expected = truncated_logarithm(graph, window, negatives)
    np.testing.assert_allclose(dense(found), expected, atol=2e-5)


def test_samples_estimate_the_mean_of_powers(graph):
    samples, window = 4_000, 4
    found = sample_rows(graph, slice(0, 72), window=window, samples=samples, seed=1)
    counts = scipy.sparse.csr_array((found.counts, found.indices, found.indptr), (72, 72)).toarray()
    factors = row_factors(graph, window=window, samples=samples)
    assert (counts.sum(axis=1) == graph.degrees * samples * window).all()
    estimate, expected = counts * factors[:, None], mean_of_powers(graph, window)
    # a count of n is off by about its root; the walks of one edge give `window` of them
    error = 6 * factors[:, None] * np.sqrt(window * (counts + 10))
    assert (np.abs(estimate - expected) <= error).all()


def test_the_sampled_matrix_approaches_the_exact_one(graph):
    expected = truncated_logarithm(graph, 5, 1)
    errors = []
    for samples in (10, 3_000):
        found = dense(sampled_matrix(graph, window=5, samples=samples, negatives=1, seed=0))
        np.testing.assert_allclose(found, found.T, atol=1e-6)
        errors.append(np.abs(found - expected).mean())
    assert errors[1] < 0.2 * errors[0]
    assert errors[1] < 0.02


def test_samples_of_ranges_are_those_of_the_whole():
    source, target = np.array(nx.barabasi_albert_graph(3_000, 8, seed=3).edges()).T
    graph = GraphStore.from_edges(source, target, num_nodes=3_000)
    settings = {"window": 10, "samples": 3, "seed": 4}
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        whole = sample_rows(graph, slice(0, 3_000), **settings)
    finally:
        numba.set_num_threads(before)
    parts = [sample_rows(graph, slice(a, a + 1_000), **settings) for a in (0, 1_000, 2_000)]
    np.testing.assert_array_equal(whole.indices, np.concatenate([p.indices for p in parts]))
    np.testing.assert_array_equal(whole.counts, np.concatenate([p.counts for p in parts]))
    for row in (0, 17, 2_999):
        own = whole.indices[whole.indptr[row] : whole.indptr[row + 1]]
        assert (np.diff(own) > 0).all()


def test_leading_eigenpairs_are_those_of_numpy():
    rng = np.random.default_rng(2)
    vectors, _ = np.linalg.qr(rng.normal(size=(900, 900)))
    values = np.concatenate([np.linspace(30, 10, 20) * (-1) ** np.arange(20), np.full(880, 0.5)])
    matrix = (vectors * values) @ vectors.T
    found, columns = leading_eigenpairs(sparse(matrix), 20, stream=np.random.default_rng(0))
    np.testing.assert_allclose(found, values[:20], rtol=1e-4)
    overlap = np.abs(np.sum(columns * vectors[:, :20], axis=0))
    np.testing.assert_allclose(overlap, 1, atol=1e-3)


@pytest.mark.parametrize("size", [40, 700])
def test_a_matrix_of_low_rank_has_no_further_vectors(size):
    rng = np.random.default_rng(2)
    half = rng.normal(size=(size, 3))
    stream = random_stream(seed=0, purpose="test")
    values, columns = leading_eigenpairs(sparse(half @ half.T), 12, stream=stream)
    product = columns * values @ columns.T
    np.testing.assert_allclose(product, half @ half.T, atol=2e-3)
    np.testing.assert_allclose(values[3:], 0, atol=1e-3)


def test_propagation_is_the_filter_of_the_laplacian(graph):
    """Chebyshev's sum against the matrix function that it expands."""
    adjacency = graph.adjacency(np.float64).toarray()
    degrees = adjacency.sum(axis=1)
    steps = adjacency / np.where(degrees > 0, degrees, 1)[:, None]
    centred = np.eye(72) - steps - 0.2 * np.eye(72)
    inner = centred @ centred / 2 - np.eye(72)
    # sum_k (-1)^k (2 - [k = 0]) I_k(theta) T_k(x) = exp(-theta x)
    expected = np.eye(72) - scipy.linalg.expm(-0.5 * inner)
    expected = expected + steps @ expected
    positions = np.random.default_rng(1).normal(size=(72, 11)).astype(np.float32)
    np.testing.assert_allclose(propagate(graph, positions), expected @ positions, atol=2e-4)
