"""Real graphs, against scipy on the same matrix."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.sparse.linalg

from peg_core.encoding.laplacian_eigenmaps import LaplacianEigenmaps
from peg_core.encoding.spectral.solver import normalised_laplacian
from peg_core.graph.components import connected_components
from peg_core.graph.graph_store import GraphStore

pytestmark = pytest.mark.data


def load(folder: Path) -> GraphStore:
    table = pq.read_table(folder / "edges.parquet", columns=["src", "dst"])
    source, target = table["src"].to_numpy(), table["dst"].to_numpy()
    nodes = pq.read_metadata(folder / "nodes.parquet").num_rows
    return GraphStore.from_edges(source, target, num_nodes=nodes)


@pytest.mark.parametrize("name", ["cora", "citeseer", "twitch-ru", "ca-astroph"])
def test_residuals_and_zeros_of_a_real_graph(name, data_folder):
    graph = load(data_folder / name)
    encoder = LaplacianEigenmaps(dimensions=128, null_vectors="deflate", preset="faithful")
    encoding = encoder.solve(graph, seed=0)
    vectors = encoding.positions.astype(np.float64)
    values = np.array(encoding.report["eigenvalues"][:128])
    laplacian = normalised_laplacian(graph)
    true = np.linalg.norm(laplacian @ vectors - vectors * values, axis=0)
    assert true.max() <= 1e-3
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(128), atol=1e-5)
    count, _ = connected_components(graph)
    assert encoding.report["zeros"] == count - int((graph.degrees == 0).sum())
    assert encoding.report["warnings"] == []


@pytest.mark.slow
def test_eigenvalues_of_the_largest_component_equal_scipys(data_folder):
    graph = load(data_folder / "ca-astroph")
    encoder = LaplacianEigenmaps(dimensions=64, components="largest", tolerance=1e-5)
    report = encoder.solve(graph, seed=0).report
    _, labels = connected_components(graph)
    nodes = np.flatnonzero(labels == np.argmax(np.bincount(labels)))
    matrix = normalised_laplacian(graph)[nodes][:, nodes]
    shifted = scipy.sparse.eye_array(len(nodes), format="csr") - matrix
    values = scipy.sparse.linalg.eigsh(shifted, k=65, which="LA", tol=1e-6)[0]
    expected = np.sort(1 - values)[1:]
    np.testing.assert_allclose(report["eigenvalues"][:64], expected, atol=1e-5)
