import dataclasses

import networkx as nx
import numpy as np
import pytest

from peg_core.encoding.laplacian_eigenmaps import LaplacianEigenmaps
from peg_core.graph.graph_store import GraphStore
from tests.workers.distributed_encoding.conftest import (
    PLAIN,
    SETTINGS,
    Interrupted,
    communities,
    dense_eigenpairs,
    encode_eigenmaps,
    laplacian,
    largest_sine,
    request_for,
    run_stage,
    save,
    weighted_communities,
)
from workers.distributed_encoding.eigenmaps import is_large

pytestmark = pytest.mark.ray


@pytest.mark.parametrize(
    ("graph", "dimensions", "tolerance"),
    [
        (communities(), 7, 1e-4),
        (weighted_communities(), 7, 1e-4),
        # below 2e-6 in float64
        (nx.convert_node_labels_to_integers(nx.grid_2d_graph(40, 16)), 9, 1e-7),
    ],
    ids=["communities", "weighted", "grid"],
)
def test_subspace_and_report_agree_with_dense_eigenvectors(
    cluster, tmp_path, graph, dimensions, tolerance
):
    values, vectors = dense_eigenpairs(graph)
    assert values[dimensions + 1] - values[dimensions] > 1e-3  # the cut lies at a gap
    positions, result = encode_eigenmaps(
        graph, tmp_path, dimensions=dimensions, tolerance=tolerance, **PLAIN
    )
    report = result["report"]
    assert largest_sine(positions, vectors[:, 1 : dimensions + 1]) <= 1e-3
    np.testing.assert_allclose(
        report["eigenvalues"], values[1 : dimensions + 2], atol=max(tolerance, 1e-6)
    )
    recomputed = laplacian(graph) @ positions - positions * report["eigenvalues"][:dimensions]
    # positions are stored in float32
    np.testing.assert_allclose(np.linalg.norm(recomputed, axis=0), report["residuals"], atol=1e-6)
    assert report["largest_residual"] == max(report["residuals"]) <= tolerance
    assert report["solver"] == "distributed"
    assert report["warnings"] == []
    assert result["edges"] == graph.number_of_edges()
    assert not (tmp_path / "work").exists()


def test_report_has_the_keys_of_the_encoder_in_one_task(reference, tmp_path):
    save(communities(), tmp_path)
    expected = LaplacianEigenmaps(dimensions=7).solve(GraphStore.open(tmp_path), seed=0).report
    assert reference[1]["report"].keys() == expected.keys()


def test_positions_are_scaled_by_commute_time_with_unit_rows(cluster, tmp_path):
    graph = communities()
    positions, _ = encode_eigenmaps(graph, tmp_path, dimensions=7, tolerance=1e-4)
    values, vectors = dense_eigenpairs(graph)
    expected = vectors[:, 1:8] / np.sqrt(values[1:8])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(positions @ positions.T, expected @ expected.T, atol=1e-3)


def test_auto_cuts_at_the_largest_gap(cluster, tmp_path):
    positions, result = encode_eigenmaps(
        communities(), tmp_path, dimensions="auto", smallest_dimensions=4, largest_dimensions=12
    )
    assert positions.shape[1] == result["report"]["dimensions"] == 7
    assert len(result["report"]["eigenvalues"]) == 13


def test_a_run_killed_between_the_positions_and_their_marker_ends_well(cluster, tmp_path):
    parameters = {"dimensions": 7, **PLAIN}

    def interrupt(what, done, total):
        if what == "positions" and done == total:
            assert (tmp_path / "out" / "encoding-0" / "all.npy").exists()
            raise Interrupted

    with pytest.raises(Interrupted):
        encode_eigenmaps(communities(), tmp_path, hear=interrupt, **parameters)
    positions, _ = encode_eigenmaps(communities(), tmp_path, **parameters)
    _, vectors = dense_eigenpairs(communities())
    assert largest_sine(positions, vectors[:, 1:8]) <= 1e-2


@pytest.mark.parametrize(
    ("settings", "kind", "parameters", "large"),
    [
        ({}, "le", {}, True),
        ({}, "le", {"solver": "chebyshev"}, True),
        ({}, "le", {"solver": "arpack"}, False),
        ({"workers": 1}, "le", {}, False),
        ({"distribute_encoding_above": 640}, "le", {}, False),
        ({}, "another", {}, False),
    ],
)
def test_which_graphs_are_encoded_by_all_workers(tmp_path, settings, kind, parameters, large):
    save(communities(), tmp_path)
    request = request_for(tmp_path, tmp_path, kind, parameters)
    assert is_large(dataclasses.replace(SETTINGS, **settings), request) is large


def test_the_stage_uses_all_workers_for_a_large_graph(cluster, tmp_path):
    save(communities(), tmp_path / "ingest")
    folder, result = run_stage(tmp_path / "ingest", tmp_path, [{"kind": "le", "dimensions": 7}])
    assert result.details["encoding-0-all"]["report"]["solver"] == "distributed"
    assert np.load(folder / "encoding-0" / "all.npy").shape == (640, 7)
    assert sorted(path.name for path in folder.iterdir()) == ["done", "encoding-0"]
