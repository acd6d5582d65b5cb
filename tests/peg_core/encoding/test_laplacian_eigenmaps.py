"""The encoder: components, scales, report."""

from __future__ import annotations

import json

import networkx as nx
import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from peg_core.encoding import ENCODERS
from peg_core.encoding.compare.alignment import eta
from peg_core.encoding.laplacian_eigenmaps import LaplacianEigenmaps
from peg_core.encoding.parameter_checks import WeightNotPositive
from peg_core.errors import GraphTooSmall
from peg_core.graph.graph_store import GraphStore
from tests.peg_core.encoding.conftest import dense_laplacian, sine_of_largest_angle, store

PLAIN = {"preset": "faithful", "tolerance": 1e-7}


def pairwise(positions):
    return positions.astype(np.float64) @ positions.T.astype(np.float64)


def dense_nonisolated(graph):
    """Eigenvalues and eigenvectors of L without the rows of isolated nodes."""
    keep = np.flatnonzero(graph.degrees > 0)
    values, small = np.linalg.eigh(dense_laplacian(graph)[np.ix_(keep, keep)])
    vectors = np.zeros((graph.num_nodes, len(keep)))
    vectors[keep] = small
    return values, vectors


def test_zeros_of_a_disconnected_graph_are_counted_exactly(disconnected):
    encoding = LaplacianEigenmaps(dimensions=48, **PLAIN).solve(disconnected, seed=0)
    values, vectors = dense_nonisolated(disconnected)
    zeros = int((values < 1e-10).sum())
    assert zeros == 42
    assert encoding.report["zeros"] == zeros
    assert encoding.report["components"] == zeros + 7
    assert encoding.report["eigenvalues"][:zeros] == [0.0] * zeros
    np.testing.assert_allclose(encoding.report["eigenvalues"], values[:49], atol=1e-6)
    assert sine_of_largest_angle(vectors[:, :zeros], encoding.positions[:, :zeros]) < 1e-6


@pytest.mark.parametrize("null_vectors", ["deflate", "keep"])
def test_merged_subspace_of_a_disconnected_graph_equals_dense(disconnected, null_vectors):
    values, vectors = dense_nonisolated(disconnected)
    first = 42 if null_vectors == "deflate" else 0
    gaps = np.diff(values[42:80])
    dimensions = 42 - first + 4 + int(np.argmax(gaps[3:]))
    encoder = LaplacianEigenmaps(dimensions=dimensions, null_vectors=null_vectors, **PLAIN)
    found = encoder.encode(disconnected, seed=0)
    wanted = vectors[:, first : first + dimensions]
    assert sine_of_largest_angle(wanted, found) <= 1e-3


def test_more_components_than_dimensions_need_no_solve_and_warn(disconnected):
    report = LaplacianEigenmaps(dimensions=16, **PLAIN).solve(disconnected, seed=0).report
    assert report["operator_applications"] == 0
    assert report["solver"] == "none"
    assert any("component membership" in warning for warning in report["warnings"])


def test_isolated_nodes_lie_at_the_origin(disconnected):
    positions = LaplacianEigenmaps(dimensions=16).encode(disconnected, seed=0)
    isolated = disconnected.degrees == 0
    assert (positions[isolated] == 0).all()
    np.testing.assert_allclose(
        np.linalg.norm(positions[np.any(positions, axis=1)], axis=1), 1, atol=1e-6
    )


def test_per_component_places_every_component_by_its_own_eigenvectors():
    graph = store(nx.disjoint_union_all([nx.cycle_graph(9), nx.path_graph(6), nx.empty_graph(1)]))
    found = LaplacianEigenmaps(dimensions=4, components="per_component", **PLAIN)
    positions = found.encode(graph, seed=0)
    for nodes in (slice(0, 9), slice(9, 15)):
        part = dense_laplacian(graph)[nodes, nodes]
        wanted = np.linalg.eigh(part)[1][:, [0, 1, 2]]
        assert sine_of_largest_angle(wanted, positions[nodes, :3]) < 1e-5
    assert (positions[15] == 0).all()


def test_per_component_scales_by_the_components_own_eigenvalues():
    graph = store(nx.disjoint_union(nx.path_graph(7), nx.path_graph(5)))
    encoder = LaplacianEigenmaps(dimensions=3, components="per_component", rows="plain")
    positions = encoder.encode(graph, seed=0)
    for nodes in (slice(0, 7), slice(7, 12)):
        values, vectors = np.linalg.eigh(dense_laplacian(graph)[nodes, nodes])
        wanted = vectors[:, 1:4] / np.sqrt(values[1:4])
        np.testing.assert_allclose(np.abs(positions[nodes]), np.abs(wanted), atol=1e-5)


def test_largest_leaves_other_components_at_the_origin(disconnected):
    positions = LaplacianEigenmaps(dimensions=8, components="largest").encode(disconnected, seed=0)
    occupied = np.any(positions != 0, axis=1)
    graph = nx.from_scipy_sparse_array(disconnected.adjacency())
    assert set(np.flatnonzero(occupied)) == max(nx.connected_components(graph), key=len)


def test_small_graph_pads_with_zero_columns_and_says_so():
    encoding = LaplacianEigenmaps(dimensions=8).solve(store(nx.path_graph(4)), seed=0)
    assert encoding.positions.shape == (4, 8)
    assert encoding.report["padded_columns"] == 5
    assert (encoding.positions[:, 3:] == 0).all()
    assert any("other columns are zero" in warning for warning in encoding.report["warnings"])


def test_residuals_in_the_report_are_the_true_ones(connected_graphs):
    graph = connected_graphs["weighted"]
    encoding = LaplacianEigenmaps(dimensions=24, preset="faithful").solve(graph, seed=0)
    vectors = encoding.positions.astype(np.float64)
    values = np.array(encoding.report["eigenvalues"][:24])
    true = np.linalg.norm(dense_laplacian(graph) @ vectors - vectors * values, axis=0)
    np.testing.assert_allclose(encoding.report["residuals"], true, atol=2e-6)
    assert encoding.report["largest_residual"] <= 1e-3
    assert len(encoding.report["eigenvalues"]) == 25


def test_report_is_json_and_complete(connected_graphs):
    report = LaplacianEigenmaps(dimensions=9).solve(connected_graphs["blocks"], seed=0).report
    assert json.loads(json.dumps(report)) == report
    needed = {"eigenvalues", "residuals", "gap", "rho", "suggestions", "components", "zeros"}
    needed |= {"padded_columns", "solver", "operator_applications", "warnings"}
    assert needed <= set(report)
    assert report["gap"] == pytest.approx(report["eigenvalues"][9] - report["eigenvalues"][8])
    assert report["suggestions"][0]["dimensions"] == 9  # ten blocks, one vector deflated


def test_cut_through_an_eigenspace_warns(connected_graphs):
    graph = connected_graphs["cycle"]  # eigenvalues come in pairs
    odd = LaplacianEigenmaps(dimensions=15, tolerance=1e-7).solve(graph, seed=0)
    even = LaplacianEigenmaps(dimensions=16, tolerance=1e-7).solve(graph, seed=0)
    assert any("splits an eigenspace" in warning for warning in odd.report["warnings"])
    assert even.report["warnings"] == []


def test_auto_cuts_at_the_largest_relative_gap(connected_graphs):
    encoder = LaplacianEigenmaps(dimensions="auto", smallest_dimensions=4, largest_dimensions=20)
    encoding = encoder.solve(connected_graphs["blocks"], seed=0)
    assert encoding.positions.shape[1] == 9
    assert encoding.report["dimensions"] == 9


@pytest.mark.parametrize(
    ("scale", "factor"),
    [
        ("plain", lambda values, _: np.ones_like(values)),
        ("sqrt_nodes", lambda values, nodes: np.sqrt(nodes) * np.ones_like(values)),
        ("commute", lambda values, _: values**-0.5),
    ],
)
def test_columns_have_the_stated_length(scale, factor, connected_graphs):
    graph = connected_graphs["blocks"]
    encoder = LaplacianEigenmaps(dimensions=9, scale=scale, rows="plain")
    encoding = encoder.solve(graph, seed=0)
    values = np.array(encoding.report["eigenvalues"][:9])
    lengths = np.linalg.norm(encoding.positions, axis=0)
    np.testing.assert_allclose(lengths, factor(values, graph.num_nodes), rtol=1e-4)


@given(seed=st.integers(0, 2**31))
def test_permuted_graph_gives_the_same_inner_products(seed):
    graph = store(nx.disjoint_union(nx.path_graph(11), nx.star_graph(5)))
    order = np.random.default_rng(seed).permutation(graph.num_nodes)
    source, target = graph.edges()
    permuted = GraphStore.from_edges(order[source], order[target], num_nodes=graph.num_nodes)
    encoder = LaplacianEigenmaps(dimensions=4)  # the fifth eigenvalue has five copies
    first, second = (encoder.encode(g, seed=0) for g in (graph, permuted))
    np.testing.assert_allclose(pairwise(second)[np.ix_(order, order)], pairwise(first), atol=1e-5)


def test_permuted_large_graph_gives_the_same_inner_products(connected_graphs):
    graph = connected_graphs["blocks"]
    order = np.random.default_rng(3).permutation(graph.num_nodes)
    source, target = graph.edges()
    permuted = GraphStore.from_edges(order[source], order[target], num_nodes=graph.num_nodes)
    encoder = LaplacianEigenmaps(dimensions=9, tolerance=1e-8)
    first, second = (encoder.encode(g, seed=0) for g in (graph, permuted))
    np.testing.assert_allclose(pairwise(second)[np.ix_(order, order)], pairwise(first), atol=3e-4)


def test_arpack_gives_the_same_distances(connected_graphs):
    graph = connected_graphs["blocks"]
    first, second = (
        LaplacianEigenmaps(dimensions=9, tolerance=1e-7, solver=solver).encode(graph, seed=0)
        for solver in ("auto", "arpack")
    )
    np.testing.assert_allclose(pairwise(first), pairwise(second), atol=1e-3)


def test_warm_start_gives_the_encoding_of_the_changed_graph(connected_graphs):
    graph = connected_graphs["blocks"]
    encoder = LaplacianEigenmaps(dimensions=9, tolerance=1e-5)
    earlier = encoder.find_spectrum(graph, seed=0)
    source, target = graph.edges()
    changed = GraphStore.from_edges(source[40:], target[40:], num_nodes=graph.num_nodes)
    warm = encoder.find_spectrum(changed, seed=1, start=earlier.vectors)
    cold = encoder.find_spectrum(changed, seed=1)
    assert "refined start" in warm.solvers
    assert 2 * warm.applications < cold.applications
    np.testing.assert_allclose(
        pairwise(encoder.place(warm)), pairwise(encoder.place(cold)), atol=1e-3
    )


def test_encoding_does_not_depend_on_the_seed_beyond_rotation(connected_graphs):
    encoder = ENCODERS["le"](dimensions=9, tolerance=1e-6)
    first, second = (encoder.encode(connected_graphs["blocks"], seed=seed) for seed in (0, 1))
    np.testing.assert_allclose(pairwise(first), pairwise(second), atol=1e-3)


def test_edgeless_graph_is_all_origin():
    graph = GraphStore.from_edges([], [], num_nodes=5)
    encoding = LaplacianEigenmaps(dimensions=3).solve(graph, seed=0)
    assert (encoding.positions == 0).all()
    assert encoding.report["isolated_nodes"] == 5
    assert encoding.report["padded_columns"] == 3


def test_one_node_is_too_small():
    with pytest.raises(GraphTooSmall, match="at least 2 nodes"):
        LaplacianEigenmaps().encode(GraphStore.from_edges([], [], num_nodes=1), seed=0)


def test_negative_weights_are_refused():
    graph = GraphStore.from_edges([0, 1], [1, 2], num_nodes=3, weights=[1.0, -2.0])
    with pytest.raises(WeightNotPositive, match=r"smallest edge weight is -2\.0"):
        LaplacianEigenmaps(dimensions=2).encode(graph, seed=0)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"dimensions": 0}, "dimensions is 0"),
        ({"dimensions": "many"}, "dimensions is 'many'"),
        ({"tolerance": 2.0}, "tolerance is 2.0"),
        ({"scale": "loud"}, "scale is 'loud'"),
        ({"solver": "magic"}, "solver is 'magic'"),
        ({"smallest_dimensions": 200}, "smallest_dimensions is 200"),
        ({"preset": "faithful", "scale": "commute"}, "null vectors"),
    ],
)
def test_wrong_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        LaplacianEigenmaps.check_parameters(parameters)


def test_memory_mapped_graph_on_any_number_of_threads_gives_the_same_encoding(tmp_path):
    blocks = nx.random_partition_graph([500] * 8, 0.04, 0.0005, seed=1)
    store(blocks).save(tmp_path)
    graph = GraphStore.open(tmp_path)
    encoder = LaplacianEigenmaps(dimensions=7, tolerance=1e-5)
    before = numba.get_num_threads()
    found = []
    for threads in (1, before):
        numba.set_num_threads(threads)
        found.append(encoder.encode(graph, seed=0))
    numba.set_num_threads(before)
    assert eta(*found) < 1e-2
