import dataclasses
import json
import os
import signal

import networkx as nx
import numpy as np
import psutil
import pytest

from peg_core.encoding.laplacian_eigenmaps import LaplacianEigenmaps, WeightNotPositive
from peg_core.graph.graph_store import GraphStore
from peg_core.splits.edge_split import TRAIN
from peg_core.splits.split_store import NO_FOLD, LabelledPairs, SplitStore
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.stage import StageContext
from pipeline.stages import encode_all
from workers.cluster import Cluster, ClusterSettings
from workers.distributed_encoding.eigenmaps import TileSizes, encode_large, is_large
from workers.tasks.encode import EncodeRequest

pytestmark = pytest.mark.ray

PLAIN = {"preset": "paper", "null_vectors": "deflate"}
REFERENCE = {"dimensions": 7, "tolerance": 1e-4, "seed": 5, **PLAIN}
SETTINGS = ClusterSettings(workers=2, distribute_encoding_above=500)


class Interrupted(Exception):
    """Ends a run in the middle."""


def communities(blocks=8, size=80, seed=1):
    chances = np.full((blocks, blocks), 0.005) + np.eye(blocks) * 0.15
    return nx.stochastic_block_model([size] * blocks, chances, seed=seed)


def weighted_communities():
    graph = communities()
    weights = np.random.default_rng(2).uniform(0.5, 2, graph.number_of_edges())
    for (_, _, data), weight in zip(graph.edges(data=True), weights, strict=True):
        data["weight"] = float(np.float32(weight))
    return graph


def with_fragments():
    """A large component whose nodes are scattered, small ones, and isolated nodes."""
    parts = [communities(), nx.path_graph(40), nx.cycle_graph(9), nx.path_graph(2)]
    graph = nx.disjoint_union_all([*parts, nx.empty_graph(7)])
    order = np.random.default_rng(3).permutation(graph.number_of_nodes())
    return nx.relabel_nodes(graph, dict(enumerate(order.tolist())))


def save(graph, folder):
    edges = [(a, b, data.get("weight", 1.0)) for a, b, data in graph.edges(data=True)]
    source, target, weights = map(np.array, zip(*edges, strict=True))
    weighted = bool(nx.get_edge_attributes(graph, "weight"))
    store = GraphStore.from_edges(
        source,
        target,
        num_nodes=graph.number_of_nodes(),
        weights=weights if weighted else None,
    )
    store.save(folder)


def laplacian(graph):
    """Dense, of the nodes in the order of their numbers; rows of isolated nodes are zero."""
    adjacency = nx.to_numpy_array(graph, nodelist=range(graph.number_of_nodes()))
    degrees = adjacency.sum(axis=1)
    inverse = np.where(degrees > 0, 1 / np.sqrt(np.maximum(degrees, 1e-300)), 0)
    return np.diag((degrees > 0).astype(float)) - inverse[:, None] * adjacency * inverse


def dense_eigenpairs(graph):
    """Eigenpairs of the part of L where nodes have edges, zeros first."""
    nodes = [node for node in range(graph.number_of_nodes()) if graph.degree(node)]
    values, inner = np.linalg.eigh(laplacian(graph)[np.ix_(nodes, nodes)])
    vectors = np.zeros((graph.number_of_nodes(), len(nodes)))
    vectors[nodes] = inner
    return values, vectors


def largest_sine(found, expected):
    """Sine of the largest angle between the spans of two sets of columns."""
    left, _ = np.linalg.qr(np.asarray(found, dtype=np.float64))
    right, _ = np.linalg.qr(expected)
    return np.linalg.norm(left - right @ (right.T @ left), 2)


def encode(
    graph, folder, settings=SETTINGS, sizes=(150, 4), tell=lambda _, __: None, seed=0, **parameters
):
    """Positions and the result in the marker."""
    if not (folder / "graph").exists():
        save(graph, folder / "graph")
    request = EncodeRequest("le", parameters, seed, folder / "out.npy", graph=folder / "graph")
    encode_large(
        Cluster(settings),
        request,
        work=folder / "work",
        marker=folder / "marker.json",
        sizes=TileSizes(*sizes),
        tell=tell,
    )
    return np.load(request.out), json.loads((folder / "marker.json").read_text())


@pytest.fixture(scope="module")
def reference(cluster, tmp_path_factory):
    """Positions and result of an undisturbed run with :data:`REFERENCE`."""
    return encode(communities(), tmp_path_factory.mktemp("reference"), **REFERENCE)


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
    positions, result = encode(graph, tmp_path, dimensions=dimensions, tolerance=tolerance, **PLAIN)
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
    positions, _ = encode(graph, tmp_path, dimensions=7, tolerance=1e-4)
    values, vectors = dense_eigenpairs(graph)
    expected = vectors[:, 1:8] / np.sqrt(values[1:8])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(positions @ positions.T, expected @ expected.T, atol=1e-3)


def test_columns_that_are_locked_stay_right(cluster, tmp_path):
    graph = communities(blocks=12, size=60)
    values, vectors = dense_eigenpairs(graph)
    cut = 12 + int(np.argmax(np.diff(values)[12:30]))
    seen = []
    positions, _ = encode(
        graph,
        tmp_path,
        dimensions=cut,
        tolerance=1e-5,
        tell=lambda what, p: seen.append((what, p.total)),
        **PLAIN,
    )
    filtered = [total for what, total in seen if "filter" in what]
    assert min(filtered) < max(filtered)  # fewer blocks are filtered at the end
    gap = values[cut + 1] - values[cut]
    assert largest_sine(positions, vectors[:, 1 : cut + 1]) <= 1e-4 * cut / gap


@pytest.mark.parametrize("sizes", [(150, 8), (400, 32), (10_000, 16)])
def test_tiles_do_not_change_the_subspace(reference, tmp_path, sizes):
    positions, _ = encode(communities(), tmp_path, sizes=sizes, **REFERENCE)
    assert largest_sine(positions, reference[0]) <= 1e-3


def test_one_worker_gives_the_numbers_of_two(reference, tmp_path):
    alone = dataclasses.replace(SETTINGS, workers=1)
    positions, result = encode(communities(), tmp_path, alone, **REFERENCE)
    np.testing.assert_array_equal(positions, reference[0])
    assert result["report"] == reference[1]["report"]


def test_components_are_merged_by_eigenvalue(cluster, tmp_path):
    graph = with_fragments()
    values, vectors = dense_eigenpairs(graph)
    positions, result = encode(graph, tmp_path, dimensions=10, tolerance=1e-7, **PLAIN)
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
    positions, result = encode(graph, tmp_path, dimensions=14, tolerance=1e-7, preset="paper")
    np.testing.assert_allclose(result["report"]["eigenvalues"], values[:15], atol=1e-5)
    assert largest_sine(positions[:, :4], vectors[:, :4]) <= 1e-5
    assert largest_sine(positions, vectors[:, :14]) <= 1e-3


@pytest.mark.parametrize(
    ("mode", "scale"),
    [("per_component", "commute"), ("per_component", "sqrt_nodes"), ("largest", "sqrt_nodes")],
)
def test_components_may_share_columns_or_be_left_out(cluster, tmp_path, mode, scale):
    graph = with_fragments()
    positions, result = encode(
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


def test_auto_cuts_at_the_largest_gap(cluster, tmp_path):
    positions, result = encode(
        communities(), tmp_path, dimensions="auto", smallest_dimensions=4, largest_dimensions=12
    )
    assert positions.shape[1] == result["report"]["dimensions"] == 7
    assert len(result["report"]["eigenvalues"]) == 13


@pytest.mark.parametrize(
    "phase",
    [
        "filter",
        pytest.param("gram", marks=pytest.mark.slow),
        "rotate",
        pytest.param("measure", marks=pytest.mark.slow),
        "positions",
    ],
)
def test_an_interrupted_run_goes_on_at_the_last_finished_shard(reference, tmp_path, phase):
    where = "positions" if phase == "positions" else f"iteration 2, {phase}"

    def interrupt(what, progress):
        if what == where and progress.done == 1:
            raise Interrupted

    alone = dataclasses.replace(SETTINGS, workers=1)
    with pytest.raises(Interrupted):
        encode(communities(), tmp_path, alone, tell=interrupt, **REFERENCE)
    seen = []
    again, result = encode(
        communities(),
        tmp_path,
        tell=lambda what, p: seen.append((what, p.done, p.total)),
        **REFERENCE,
    )
    np.testing.assert_array_equal(again, reference[0])
    assert result["report"] == reference[1]["report"]
    first_of_phase = next(event for event in seen if event[0] == where)
    assert 1 <= first_of_phase[1] < first_of_phase[2]
    assert not any(what.startswith(("iteration 0", "iteration 1,")) for what, _, _ in seen)


def test_a_run_killed_between_the_positions_and_their_marker_ends_well(cluster, tmp_path):
    parameters = {"dimensions": 7, **PLAIN}

    def interrupt(what, progress):
        if what == "positions" and progress.done == progress.total:
            (tmp_path / "work" / "positions.npy").rename(tmp_path / "out.npy")
            raise Interrupted

    with pytest.raises(Interrupted):
        encode(communities(), tmp_path, tell=interrupt, **parameters)
    positions, _ = encode(communities(), tmp_path, **parameters)
    _, vectors = dense_eigenpairs(communities())
    assert largest_sine(positions, vectors[:, 1:8]) <= 1e-2


@pytest.mark.slow
def test_a_killed_worker_changes_nothing(reference, tmp_path):
    killed = []

    def kill(what, progress):
        if what == "iteration 2, gram" and progress.done == 1 and not killed:
            mine = psutil.Process().children(recursive=True)
            workers = [p for p in mine if p.name() in ("ray::_run_shard", "ray::IDLE")]
            killed.extend(worker.pid for worker in workers)
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

    again, _ = encode(communities(), tmp_path, tell=kill, **REFERENCE)
    assert killed
    np.testing.assert_array_equal(again, reference[0])


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
        split.write_held_out(part, LabelledPairs(none, none, none.astype(np.uint8)))
    request = EncodeRequest(
        "le", {"dimensions": 7, **PLAIN}, 0, tmp_path / "out.npy", split=split.folder, fold=fold
    )
    marker = tmp_path / "marker.json"
    encode_large(Cluster(SETTINGS), request, work=tmp_path / "work", marker=marker)
    kept = nx.Graph()
    for other in set(range(8)) - {fold}:
        kept.add_edges_from(zip(*(end.tolist() for end in split.links(other)), strict=True))
    assert nx.is_connected(kept)
    _, vectors = dense_eigenpairs(kept)
    assert largest_sine(np.load(request.out), vectors[:, 1:8]) <= 1e-2  # 1e-3 over the gap
    leaks = {"valid": 0, "test": 0} if fold == NO_FOLD else {"valid": 0, "test": 0, "fold 1": 0}
    assert json.loads(marker.read_text())["leaks"] == leaks


def test_two_iterations_at_most_are_kept_on_disk(cluster, tmp_path):
    most = []

    def count(what, progress):
        most.append(len(list((tmp_path / "work").glob("iteration-*"))))

    encode(communities(), tmp_path, dimensions=5, tolerance=1e-4, tell=count, **PLAIN)
    assert max(most) == 2


def test_a_graph_without_a_large_component_is_left_to_one_task(cluster, tmp_path):
    graph = nx.disjoint_union(communities(blocks=5), communities(blocks=5))
    save(graph, tmp_path / "graph")
    request = EncodeRequest("le", {}, 0, tmp_path / "out.npy", graph=tmp_path / "graph")
    encode_large(
        Cluster(SETTINGS), request, work=tmp_path / "work", marker=tmp_path / "marker.json"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph"]


def test_weights_that_are_not_positive_are_refused(cluster, tmp_path):
    graph = weighted_communities()
    graph.add_edge(0, 639, weight=-1.0)
    with pytest.raises(WeightNotPositive, match="smallest edge weight is -1"):
        encode(graph, tmp_path, dimensions=7)


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
    request = EncodeRequest(kind, parameters, 0, tmp_path / "out.npy", graph=tmp_path)
    assert is_large(dataclasses.replace(SETTINGS, **settings), request) is large


def test_the_stage_uses_all_workers_for_a_large_graph(cluster, tmp_path):
    save(communities(), tmp_path / "ingest")
    config = PipelineConfig(
        name="large",
        store=str(tmp_path),
        graph={"edges": "none"},
        encodings=[{"kind": "le", "dimensions": 7}],
    )

    class Silent:
        def update(self, done, total, note=""):
            pass

    folder = tmp_path / "encode_all"
    context = StageContext(
        config, folder, {"ingest": tmp_path / "ingest"}, Cluster(SETTINGS), Silent(), None
    )
    result = encode_all.STAGE.run(context)
    assert result.details["encoding-0-all"]["report"]["solver"] == "distributed"
    assert np.load(folder / "encoding-0" / "all.npy").shape == (640, 7)
    assert sorted(path.name for path in folder.iterdir()) == ["done", "encoding-0"]
