import json

import networkx as nx
import numpy as np
import pytest

from peg_core.artifacts.positions import Positions
from peg_core.encoding.parameter_checks import WeightNotPositive
from peg_core.encoding.spectral.component_spectra import induced_component
from peg_core.graph.graph_store import GraphStore
from peg_core.splits import entry_chunk
from peg_core.splits.edge_split import TRAIN
from peg_core.splits.held_out_pairs import HeldOutPairs
from peg_core.splits.split_store import NO_FOLD, SplitStore
from tests.workers.distributed_encoding.conftest import (
    PLAIN,
    SETTINGS,
    communities,
    dense_eigenpairs,
    encode_eigenmaps,
    laplacian,
    largest_sine,
    new_tasks,
    request_for,
    save,
    weighted_communities,
    with_fragments,
)
from workers.artifact_ref import ArtifactRef
from workers.cluster import Cluster
from workers.distributed_encoding.eigenmaps import encode_large
from workers.distributed_encoding.graph_parts import save_component
from workers.task_map import TaskMap
from workers.tasks.encode import EncodeRequest

pytestmark = pytest.mark.ray


def test_components_are_merged_by_eigenvalue(cluster, tmp_path):
    graph = with_fragments()
    values, vectors = dense_eigenpairs(graph)
    positions, result = encode_eigenmaps(graph, tmp_path, dimensions=10, tolerance=1e-7, **PLAIN)
    report = result["report"]
    assert values[3] < 1e-12 < values[4]
    assert values[14] - values[13] > 1e-3
    np.testing.assert_allclose(report["eigenvalues"], values[4:15], atol=1e-5)
    assert largest_sine(positions, vectors[:, 4:14]) <= 1e-3
    isolated = [node for node in graph if graph.degree(node) == 0]
    assert not positions[isolated].any()
    assert (report["components"], report["isolated_nodes"], report["zeros"]) == (11, 7, 4)
    assert report["solver"] == "dense+distributed"
    residuals = laplacian(graph) @ positions - positions * report["eigenvalues"][:10]
    np.testing.assert_allclose(np.linalg.norm(residuals, axis=0), report["residuals"], atol=1e-6)


def test_kept_null_vectors_come_first(cluster, tmp_path):
    graph = with_fragments()
    values, vectors = dense_eigenpairs(graph)
    positions, result = encode_eigenmaps(
        graph, tmp_path, dimensions=14, tolerance=1e-7, preset="faithful"
    )
    np.testing.assert_allclose(result["report"]["eigenvalues"], values[:15], atol=1e-5)
    assert largest_sine(positions[:, :4], vectors[:, :4]) <= 1e-5
    assert largest_sine(positions, vectors[:, :14]) <= 1e-3


@pytest.mark.parametrize(
    ("mode", "scale"),
    [("per_component", "commute"), ("per_component", "sqrt_nodes"), ("largest", "sqrt_nodes")],
)
def test_components_may_share_columns_or_be_left_out(cluster, tmp_path, mode, scale):
    graph = with_fragments()
    positions, result = encode_eigenmaps(
        graph, tmp_path, dimensions=7, tolerance=1e-7, components=mode, scale=scale, rows="plain"
    )
    for number, nodes in enumerate(sorted(nx.connected_components(graph), key=len, reverse=True)):
        nodes = sorted(nodes)
        if (number and mode == "largest") or len(nodes) == 1:
            assert not positions[nodes].any()
            continue
        if len(nodes) == 9:
            continue  # eigenvalues of a cycle are double, and the cut splits a pair
        matrix = laplacian(graph)[np.ix_(nodes, nodes)]
        values, vectors = np.linalg.eigh(matrix)
        size = len(nodes) if mode == "per_component" else graph.number_of_nodes()
        factors = 1 / np.sqrt(values[1:8]) if scale == "commute" else np.sqrt(size)
        expected = vectors[:, 1:8] * factors
        np.testing.assert_allclose(
            positions[nodes] @ positions[nodes].T,
            expected @ expected.T,
            atol=2e-3 * size if scale == "sqrt_nodes" else 2e-3,
        )
    assert len(result["report"]["residuals"]) == 7


@pytest.mark.parametrize("fold", [NO_FOLD, 1])
def test_training_graphs_are_encoded_without_their_fold_and_shown_to_be_free_of_leaks(
    cluster, tmp_path, fold
):
    save(communities(), tmp_path / "graph")
    split = SplitStore(tmp_path / "split")
    whole = GraphStore.open(tmp_path / "graph")
    everything = np.full(len(whole.indices), TRAIN, np.uint8)
    split.write_train(whole, everything, np.arange(whole.num_nodes), folds=8, seed=0)
    none = np.zeros(0, dtype=np.int64)
    for part in ("valid", "test"):
        split.write_held_out(part, HeldOutPairs(none, none, none.astype(np.uint8)))
    request = EncodeRequest(
        "le",
        {"dimensions": 7, **PLAIN},
        0,
        ArtifactRef.of_folder(tmp_path / "out", Positions),
        split=ArtifactRef.of_folder(split.folder, SplitStore),
        fold=fold,
    )
    tasks = TaskMap(Cluster(SETTINGS), tmp_path / "done")
    encode_large(tasks, request, work=tmp_path / "work")
    kept = nx.Graph()
    for other in set(range(8)) - {fold}:
        kept.add_edges_from(zip(*(end.tolist() for end in split.links(other)), strict=True))
    assert nx.is_connected(kept)
    _, vectors = dense_eigenpairs(kept)
    assert largest_sine(np.load(request.file), vectors[:, 1:8]) <= 1e-2  # 1e-3 over the gap
    leaks = {"valid": 0, "test": 0} if fold == NO_FOLD else {"valid": 0, "test": 0, "fold 1": 0}
    marker = tmp_path / "done" / f"{request.name}.json"
    assert json.loads(marker.read_text())["leaks"] == leaks


def test_a_graph_without_a_large_component_is_left_to_one_task(cluster, tmp_path):
    graph = nx.disjoint_union(communities(blocks=5), communities(blocks=5))
    save(graph, tmp_path / "graph")
    request = request_for(tmp_path / "graph", tmp_path, "le", {})
    encode_large(new_tasks(tmp_path), request, work=tmp_path / "work")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph"]


def test_weights_that_are_not_positive_are_refused(cluster, tmp_path):
    graph = weighted_communities()
    graph.add_edge(0, 639, weight=-1.0)
    with pytest.raises(WeightNotPositive, match="smallest edge weight is -1"):
        encode_eigenmaps(graph, tmp_path, dimensions=7)


@pytest.mark.parametrize("chunk", [7, 10**6])
@pytest.mark.parametrize("weighted", [False, True])
def test_components_are_copied_in_pieces_of_any_size(tmp_path, monkeypatch, chunk, weighted):
    monkeypatch.setattr(entry_chunk, "CHUNK", chunk)
    graph = with_fragments()
    if weighted:
        nx.set_edge_attributes(graph, {pair: 1.0 + sum(pair) for pair in graph.edges()}, "weight")
    save(graph, tmp_path / "graph")
    store = GraphStore.open(tmp_path / "graph")
    largest, *others = sorted(nx.connected_components(graph), key=len, reverse=True)
    for nodes in (largest, others[0] | others[2]):
        nodes = np.array(sorted(nodes))
        save_component(store, nodes, tmp_path / "part")
        found, expected = GraphStore.open(tmp_path / "part"), induced_component(store, nodes)
        np.testing.assert_array_equal(found.indptr, expected.indptr)
        np.testing.assert_array_equal(found.indices, expected.indices)
        assert (found.weights is None) == (not weighted)
        if weighted:
            np.testing.assert_array_equal(found.weights, expected.weights)
