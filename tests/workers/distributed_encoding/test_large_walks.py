"""DeepWalk and node2vec of one graph by many tasks, on a real local Ray."""

from __future__ import annotations

import dataclasses
import json

import networkx as nx
import numba
import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from peg_core.encoding import ENCODERS
from peg_core.encoding.walks.netsmf import sampled_matrix
from peg_core.graph.graph_store import GraphStore
from peg_core.random_streams import random_stream
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.stage import StageContext
from pipeline.stages import encode_all
from workers.cluster import Cluster, ClusterSettings
from workers.distributed_encoding.eigenmaps import encode_large
from workers.distributed_encoding.encoded_graph import keep_graph
from workers.distributed_encoding.large_encoders import large_encoder
from workers.distributed_encoding.netsmf import LargeNetsmf, RangeSizes, encode_large_netsmf
from workers.distributed_encoding.skip_gram_tasks import encode_large_skip_gram
from workers.tasks.encode import EncodeRequest

pytestmark = pytest.mark.ray

SETTINGS = ClusterSettings(workers=2, distribute_encoding_above=100)
NETSMF = {"solver": "netsmf", "dimensions": 12, "samples": 2, "window": 5}
SGNS = {"solver": "sgns", "dimensions": 12, "walks": 4, "walk_length": 40, "window": 5}
SMALL, WHOLE = RangeSizes(rows=250, samples=40_000, columns=8), RangeSizes()


def save_blocks(folder, *, weighted):
    """600 nodes in 6 blocks, two of them isolated."""
    chances = np.full((6, 6), 0.002) + 0.1 * np.eye(6)
    source, target = np.array(nx.stochastic_block_model([100] * 6, chances, seed=1).edges()).T
    keep = ~np.isin(source, [5, 250]) & ~np.isin(target, [5, 250])
    weights = random_stream(seed=0, purpose="test").uniform(0.5, 2, len(source))
    store = GraphStore.from_edges(
        source[keep],
        target[keep],
        num_nodes=600,
        weights=weights[keep] if weighted else None,
    )
    store.save(folder)
    return folder


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return save_blocks(tmp_path_factory.mktemp("plain"), weighted=False)


@pytest.fixture(scope="module")
def netsmf(cluster, graph, tmp_path_factory):
    """Positions and result of an undisturbed run."""
    return encode(encode_large_netsmf, graph, tmp_path_factory.mktemp("run"), NETSMF, sizes=SMALL)


class Interrupted(Exception):
    pass


def interrupt_at(name):
    def tell(what, progress):
        if what == name and progress.done:
            raise Interrupted

    return tell


def encode(encoder, graph, folder, parameters, tell=lambda _, __: None, kind="deepwalk", **sizes):
    """Positions and report."""
    request = EncodeRequest(kind, parameters, 3, folder / "out.npy", graph=graph)
    marker = folder / "marker.json"
    encoder(Cluster(SETTINGS), request, work=folder / "work", marker=marker, tell=tell, **sizes)
    assert not (folder / "work").exists()
    return np.load(request.out), json.loads(marker.read_text())


@pytest.mark.parametrize(
    ("sizes", "weighted"), [(SMALL, False), (SMALL, True), (WHOLE, False)], ids=str
)
def test_the_matrix_is_that_of_one_process(cluster, tmp_path, sizes, weighted):
    graph = save_blocks(tmp_path / "graph", weighted=weighted)
    request = EncodeRequest("deepwalk", NETSMF, 3, tmp_path / "out.npy", graph=graph)
    encoder = ENCODERS["deepwalk"](**NETSMF)
    hear = {"tell": lambda _, __: None}
    entries = sizes.samples // (encoder.window * encoder.samples)
    kept = keep_graph(cluster, request, tmp_path, rows=sizes.rows, entries=entries, **hear)
    assert (len(kept.ranges) > 2) is (sizes is SMALL)
    run = LargeNetsmf(cluster, encoder, kept, 3, tmp_path, sizes.columns, **hear)
    found = run.build_matrix(), GraphStore.open(tmp_path / "matrix")
    expected = sampled_matrix(GraphStore.open(graph), window=5, samples=2, negatives=1, seed=3)
    assert found[0] == len(expected.values)
    np.testing.assert_array_equal(found[1].indptr, expected.indptr)
    np.testing.assert_array_equal(found[1].indices, expected.indices)
    np.testing.assert_array_equal(found[1].weights, expected.values)


def test_netsmf_by_many_tasks_is_that_of_one_process(graph, netsmf):
    found, result = netsmf
    expected = ENCODERS["deepwalk"](**NETSMF).solve(GraphStore.open(graph), seed=3)
    # six communities stand out of the spectrum; the other columns have no gap to speak of
    values = result["report"]["singular_values"]
    np.testing.assert_allclose(values[:6], expected.report["singular_values"][:6], rtol=1e-3)
    np.testing.assert_allclose(values, expected.report["singular_values"], rtol=0.1)
    assert np.abs(found @ found.T - expected.positions @ expected.positions.T).mean() < 0.1
    assert not found[[5, 250]].any()
    for key in ("solver", "rows", "matrix_entries", "warnings"):
        assert result["report"][key] == expected.report[key]
    labels = np.delete(np.repeat(np.arange(6), 100), [5, 250])
    blocks = KMeans(6, n_init=5, random_state=0).fit_predict(np.delete(found, [5, 250], axis=0))
    assert adjusted_rand_score(labels, blocks) >= 0.9


@pytest.mark.parametrize("moment", ["join", "gram-2"])
def test_an_interrupted_netsmf_goes_on(graph, netsmf, tmp_path, moment):
    with pytest.raises(Interrupted):
        encode(encode_large_netsmf, graph, tmp_path, NETSMF, interrupt_at(moment), sizes=SMALL)
    done = []

    def note(what, progress):
        if progress.result and not progress.reused:
            done.append(what)

    found, _ = encode(encode_large_netsmf, graph, tmp_path, NETSMF, note, sizes=SMALL)
    assert "place" in done
    assert not {"graph", "sample", "merge"} & set(done)
    np.testing.assert_array_equal(found, netsmf[0])


def test_the_mean_of_shards_learns_and_goes_on(cluster, graph, tmp_path):
    parameters = {**SGNS, "learning_rate": 0.1}
    first, second = tmp_path / "a", tmp_path / "b"
    expected, result = encode(encode_large_skip_gram, graph, first, parameters, shards=2)
    loss = result["report"]["loss"]
    assert len(loss) == 4
    assert loss[-1] < 0.9 * loss[0]
    assert not expected[[5, 250]].any()
    length = np.linalg.norm(np.delete(expected, [5, 250], axis=0), axis=1)
    np.testing.assert_allclose(length, 1, atol=1e-5)
    tell = interrupt_at("mean-001")
    with pytest.raises(Interrupted):
        encode(encode_large_skip_gram, graph, second, parameters, tell, shards=2)
    again, _ = encode(encode_large_skip_gram, graph, second, parameters, shards=2)
    np.testing.assert_array_equal(again, expected)


def test_one_shard_of_node2vec_is_the_training_of_one_process(cluster, graph, tmp_path):
    parameters = {"p": 0.5, "dimensions": 8, "walks": 2, "walk_length": 20}
    found, _ = encode(
        encode_large_skip_gram, graph, tmp_path, parameters, kind="node2vec", shards=1
    )
    before = numba.get_num_threads()
    numba.set_num_threads(1)  # as in a task of one CPU
    try:
        expected = ENCODERS["node2vec"](**parameters).encode(GraphStore.open(graph), seed=3)
    finally:
        numba.set_num_threads(before)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("settings", "kind", "parameters", "expected"),
    [
        ({}, "le", {}, encode_large),
        ({}, "deepwalk", {"solver": "netsmf"}, encode_large_netsmf),
        ({}, "deepwalk", {"solver": "sgns"}, encode_large_skip_gram),
        ({}, "node2vec", {}, encode_large_skip_gram),
        ({}, "deepwalk", {}, None),  # netmf
        ({}, "line", {}, None),
        ({"workers": 1}, "node2vec", {}, None),
        ({"distribute_encoding_above": 600}, "node2vec", {}, None),
    ],
)
def test_who_encodes_what(graph, tmp_path, settings, kind, parameters, expected):
    request = EncodeRequest(kind, parameters, 0, tmp_path / "out.npy", graph=graph)
    assert large_encoder(dataclasses.replace(SETTINGS, **settings), request) is expected


def test_the_stage_uses_all_workers(cluster, graph, tmp_path):
    config = PipelineConfig(
        name="large",
        store=str(tmp_path),
        graph={"edges": "none"},
        encodings=[{"kind": "deepwalk", **NETSMF}, {"kind": "line", "samples": 5}],
    )

    class Silent:
        def update(self, done, total, note=""):
            pass

    folder = tmp_path / "encode_all"
    context = StageContext(config, folder, {"ingest": graph}, Cluster(SETTINGS), Silent(), None)
    result = encode_all.STAGE.run(context)
    assert result.details["encoding-0-all"]["report"]["distributed"]
    assert np.load(folder / "encoding-0" / "all.npy").shape == (600, 12)
    assert sorted(path.name for path in folder.iterdir()) == ["done", "encoding-0", "encoding-1"]
    assert [path.name for path in (folder / "encoding-1").iterdir()] == ["all.npy"]


def test_a_graph_without_edges_is_left_to_one_task(cluster, tmp_path):
    GraphStore.from_edges([], [], num_nodes=200).save(tmp_path / "graph")
    for encoder, parameters in ((encode_large_netsmf, NETSMF), (encode_large_skip_gram, SGNS)):
        request = EncodeRequest(
            "deepwalk", parameters, 0, tmp_path / "out.npy", graph=tmp_path / "graph"
        )
        encoder(Cluster(SETTINGS), request, work=tmp_path / "work", marker=tmp_path / "marker.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph"]
