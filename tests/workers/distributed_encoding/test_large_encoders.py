"""Who encodes a large graph, and that no cluster setting changes what comes out."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from peg_core.graph.graph_store import GraphStore
from tests.workers.distributed_encoding.conftest import (
    NETSMF,
    SETTINGS,
    SGNS,
    new_tasks,
    request_for,
    run_encoder,
    run_stage,
)
from workers.distributed_encoding import large_encoders
from workers.distributed_encoding.eigenmaps import encode_large
from workers.distributed_encoding.large_encoders import large_encoder
from workers.distributed_encoding.netsmf import RangeSizes, encode_large_netsmf
from workers.distributed_encoding.skip_gram_tasks import encode_large_skip_gram

pytestmark = pytest.mark.ray

NODE2VEC = {"p": 0.5, "dimensions": 8, "walks": 2, "walk_length": 20}


@pytest.fixture
def sharded(monkeypatch):
    """Graphs of a hundred nodes are small, all others large."""
    monkeypatch.setattr(large_encoders, "SHARDED_ABOVE_NODES", 100)


@pytest.mark.parametrize(
    ("settings", "kind", "parameters", "expected"),
    [
        ({}, "le", {}, encode_large),
        ({}, "deepwalk", {"solver": "netsmf"}, encode_large_netsmf),
        ({}, "deepwalk", {"solver": "sgns"}, encode_large_skip_gram),
        ({}, "node2vec", {}, encode_large_skip_gram),
        ({}, "deepwalk", {}, None),  # netmf
        ({}, "line", {}, None),
        ({"workers": 1}, "le", {}, None),
        ({"workers": 1}, "node2vec", {}, encode_large_skip_gram),
        ({"distribute_encoding_above": 600}, "le", {}, None),
        ({"distribute_encoding_above": 600}, "node2vec", {}, encode_large_skip_gram),
    ],
)
def test_who_encodes_what(sharded, blocks, tmp_path, settings, kind, parameters, expected):
    request = request_for(blocks, tmp_path, kind, parameters)
    assert large_encoder(dataclasses.replace(SETTINGS, **settings), request) is expected


@pytest.mark.parametrize("limit", [599, 600])
@pytest.mark.parametrize(
    ("kind", "parameters"), [("deepwalk", SGNS), ("node2vec", {}), ("deepwalk", NETSMF)]
)
def test_no_cluster_setting_chooses_how_walks_are_trained(
    blocks, tmp_path, monkeypatch, limit, kind, parameters
):
    monkeypatch.setattr(large_encoders, "SHARDED_ABOVE_NODES", limit)
    request = request_for(blocks, tmp_path, kind, parameters)
    chosen = {
        large_encoder(
            dataclasses.replace(SETTINGS, workers=workers, distribute_encoding_above=above), request
        )
        for workers in (1, 2, 8)
        for above in (0, 599, 600, 10**9)
    }
    assert len(chosen) == 1
    assert (chosen == {None}) is (limit == 600)


@pytest.mark.parametrize(
    ("kind", "parameters", "sizes"),
    [
        ("deepwalk", SGNS, {}),
        ("node2vec", NODE2VEC, {}),
        ("deepwalk", NETSMF, {"sizes": RangeSizes(rows=250, samples=40_000, columns=8)}),
    ],
    ids=["sgns", "node2vec", "netsmf"],
)
def test_one_two_or_three_workers_give_the_same_bytes(
    cluster, sharded, blocks, tmp_path, kind, parameters, sizes
):
    files = []
    for workers in (1, 2, 3):
        folder = tmp_path / str(workers)
        settings = dataclasses.replace(SETTINGS, workers=workers)
        request = request_for(blocks, folder, kind, parameters, seed=3)
        encoder = large_encoder(settings, request)
        _, result = run_encoder(encoder, request, folder, settings, **sizes)
        assert result["report"]["distributed"]
        files.append(request.file.read_bytes())
    assert files[1] == files[0]
    assert files[2] == files[0]


def test_an_encoding_that_is_marked_is_not_made_again(cluster, blocks, tmp_path):
    heard = []
    request = request_for(blocks, tmp_path, "node2vec", NODE2VEC)
    for encoder in (encode_large, encode_large_netsmf, encode_large_skip_gram):
        tasks = new_tasks(tmp_path, hear=lambda *step: heard.append(step))
        tasks.mark(request.name, {"report": {}, "leaks": {}, "edges": 0})
        encoder(tasks, request, work=tmp_path / "work")
    assert not heard
    assert [path.name for path in tmp_path.iterdir()] == ["done"]


def test_the_stage_uses_all_workers(cluster, sharded, blocks, tmp_path):
    encodings = [{"kind": "deepwalk", **NETSMF}, {"kind": "line", "samples": 5}]
    folder, result = run_stage(blocks, tmp_path, encodings)
    assert result.details["encoding-0-all"]["report"]["distributed"]
    assert np.load(folder / "encoding-0" / "all.npy").shape == (600, 12)
    assert sorted(path.name for path in folder.iterdir()) == ["done", "encoding-0", "encoding-1"]
    assert [path.name for path in (folder / "encoding-1").iterdir()] == ["all.npy"]


def test_a_graph_without_edges_is_left_to_one_task(cluster, tmp_path):
    GraphStore.from_edges([], [], num_nodes=200).save(tmp_path / "graph")
    for encoder, parameters in ((encode_large_netsmf, NETSMF), (encode_large_skip_gram, SGNS)):
        request = request_for(tmp_path / "graph", tmp_path, "deepwalk", parameters)
        encoder(new_tasks(tmp_path), request, work=tmp_path / "work")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["graph"]
