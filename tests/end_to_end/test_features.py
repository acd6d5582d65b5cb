"""Every kind of node features from the Parquet table to scores, on a real local Ray."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from safetensors.numpy import load_file

from peg_core.artifacts.trained_model import TrainedModel
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.node_features import FEATURE_KINDS
from peg_core.layers.message_graph import MessageGraph
from pipeline.run.runner import run_pipeline

pytestmark = [pytest.mark.ray, pytest.mark.slow]


def with_features(config, graph=(), **values):
    return config.model_copy(
        update={
            "features": config.features.model_copy(update=values),
            "graph": config.graph.model_copy(update=dict(graph)),
            "train": config.train.model_copy(update={"epochs": 2}),
        }
    )


def read_of(kind, current, graph, positions):
    """The features of all nodes of a graph, from the files of the run alone."""
    x = np.array(pl.read_parquet(current / "nodes.parquet")["x"].to_list())
    node = x / np.linalg.norm(x, axis=1, keepdims=True)
    degree = np.asarray((graph.adjacency() > 0).sum(axis=1)).ravel()
    return {
        "node": node,
        "degree": np.stack([np.log(1 + degree), np.ones(len(degree))], axis=1),
        "one_hot": np.eye(len(degree)),
        "random": np.load(current / "store/current/features/features.npy")
        if kind == "random"
        else None,
        "positional": positions,
        "node+positional": np.hstack([node, positions]),
        "learned": load_file(current / "store/current/train/seed-0/weights.safetensors").get(
            "table.weight"
        ),
    }[kind]


@pytest.mark.parametrize("kind", FEATURE_KINDS)
def test_each_kind_runs_to_scores_and_is_read_alike_everywhere(
    cluster, small_pipeline, display, tmp_path, kind
):
    config = with_features(small_pipeline, kind=kind, dimensions=16)
    manifests = run_pipeline(config, display)
    current = Path(config.store) / "current"
    assert manifests["features"].counts["kind"] == kind
    assert manifests["score"].counts["pairs"] == 600
    spec = json.loads((current / "train/seed-0/model.json").read_text())
    model = TrainedModel(current / "train/seed-0").network
    # the embeddings of both graphs are those of the model on features of that very graph
    for graph, encoded, embedded in (
        ("split/train_graph", "encode", "embed/seed-0"),
        ("ingest", "encode_all", "embed_all"),
    ):
        store = GraphStore.open(current / graph)
        positions = np.load(current / encoded / "encoding-0/all.npy")
        x = read_of(kind, tmp_path, store, positions)
        assert spec["in_channels"] == x.shape[1]
        messages = MessageGraph.of_graph(store, [positions], model.rule)
        with torch.no_grad():
            expected = model(torch.from_numpy(x.astype(np.float32)), messages)
        found = np.load(current / embedded / "layer-1.npy")
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_many_columns_indices_labels_and_isolated_nodes_arrive(cluster, small_pipeline, display):
    table = pl.DataFrame({"id": [*range(120), 777]}).with_columns(
        days=pl.col("id") * 2,
        partner=pl.col("id") % 2 == 0,
        tags=pl.concat_list(pl.col("id") % 5, 5 + pl.col("id") % 3),
        community=pl.col("id") // 30,
        part=pl.lit("train"),
    )
    table.sample(fraction=1, shuffle=True, seed=1).write_parquet(small_pipeline.graph.nodes)
    graph = {
        "features": ["days", "partner", "tags"],
        "label": "community",
        "node_split": "part",
    }
    config = with_features(small_pipeline, graph, standardise=True, dimensions=4)
    manifests = run_pipeline(config.model_copy(update={"score": None}), display)
    assert manifests["ingest"].counts["feature_width"] == 10
    assert manifests["ingest"].counts["labelled_nodes"] == 121
    assert manifests["ingest"].counts["isolated_nodes"] >= 1
    assert manifests["features"].counts["width"] == 4
    assert 0 < manifests["features"].counts["explained_variance"] <= 1
    current = Path(config.store) / "current"
    raw = np.load(current / "ingest/features.npy")
    np.testing.assert_array_equal(raw[:, 0], table["days"])
    np.testing.assert_array_equal(raw[:, 1], table["partner"])
    np.testing.assert_array_equal(np.nonzero(raw[:, 2:])[1].reshape(-1, 2), table["tags"].to_list())
    kept = pl.read_parquet(current / "ingest/node_table.parquet")
    assert kept["label"].equals(table["community"].alias("label"))


def test_a_graph_without_features_reads_degrees(cluster, small_pipeline, display):
    graph = {"nodes": None, "features": None}
    config = with_features(small_pipeline, graph).model_copy(update={"score": None})
    manifests = run_pipeline(config, display)
    assert manifests["features"].counts == {"kind": "degree", "width": 2}
