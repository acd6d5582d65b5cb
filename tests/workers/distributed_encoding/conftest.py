"""Graphs that are large for these tests, and what one call of a large encoder leaves."""

from __future__ import annotations

import json

import networkx as nx
import numpy as np
import pytest

from peg_core.artifacts.positions import Positions
from peg_core.graph.graph_store import GraphStore
from peg_core.random_streams import random_stream
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.stage import StageContext
from pipeline.run.stage_inputs import StageInputs
from pipeline.stages import encode_all
from workers.artifact_ref import ArtifactRef
from workers.cluster import Cluster
from workers.cluster_settings import ClusterSettings
from workers.distributed_encoding.eigenmaps import TileSizes, encode_large
from workers.task_map import TaskMap
from workers.tasks.encode import EncodeRequest

SETTINGS = ClusterSettings(workers=2, distribute_encoding_above=500)
PLAIN = {"preset": "faithful", "null_vectors": "deflate"}
NETSMF = {"solver": "netsmf", "dimensions": 12, "samples": 2, "window": 5}
SGNS = {"solver": "sgns", "dimensions": 12, "walks": 4, "walk_length": 40, "window": 5}
REFERENCE = {"dimensions": 7, "tolerance": 1e-4, "seed": 5, **PLAIN}


class Interrupted(Exception):
    """Ends a run in the middle."""


def not_listening(what, done, total):
    """The user who does not care how far it is."""


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


def request_for(graph, folder, kind, parameters, seed=0):
    """An encoding of the graph in one folder, written to another."""
    return EncodeRequest(
        kind,
        parameters,
        seed,
        ArtifactRef.of_folder(folder / "out", Positions),
        graph=ArtifactRef.of_folder(graph, GraphStore),
    )


def new_tasks(folder, settings=SETTINGS, hear=not_listening):
    """As a stage has them; ``hear`` is told the step, and how many of its shards are done."""

    def update(done, total, note):
        name, _, step = note.partition(": ")
        what, _, count = step.rpartition(" ")
        assert (name, count) == ("encoding-0-all", f"{done}/{total}")
        hear(what, done, total)

    return TaskMap(Cluster(settings), folder / "done", update)


def run_encoder(encoder, request, folder, settings=SETTINGS, hear=not_listening, **sizes):
    """Positions, and the result in the mark."""
    encoder(new_tasks(folder, settings, hear), request, work=folder / "work", **sizes)
    assert not (folder / "work").exists()
    return np.load(request.file), json.loads((folder / "done" / "encoding-0-all.json").read_text())


def encode_eigenmaps(
    graph,
    folder,
    settings=SETTINGS,
    sizes=(150, 4),
    hear=not_listening,
    seed=0,
    **parameters,
):
    """Positions of a networkx graph, and the result in the mark."""
    if not (folder / "graph").exists():
        save(graph, folder / "graph")
    request = request_for(folder / "graph", folder, "le", parameters, seed)
    return run_encoder(encode_large, request, folder, settings, hear, sizes=TileSizes(*sizes))


def run_stage(graph, folder, encodings):
    """The stage that encodes the graph of all known edges."""
    config = PipelineConfig(
        name="large", store=str(folder), graph={"edges": "none"}, encodings=encodings
    )

    class Silent:
        def update(self, done, total, note=""):
            pass

    out = folder / "encode_all"
    context = StageContext(
        config,
        ArtifactRef.of_folder(out, Positions),
        StageInputs({"ingest": ArtifactRef.of_folder(graph, GraphStore)}),
        TaskMap(Cluster(SETTINGS), out / "done"),
        Silent(),
        None,
    )
    return out, encode_all.STAGE.run(context)


@pytest.fixture(scope="module")
def reference(cluster, tmp_path_factory):
    """Positions and result of an undisturbed run with :data:`REFERENCE`."""
    return encode_eigenmaps(communities(), tmp_path_factory.mktemp("reference"), **REFERENCE)


@pytest.fixture(scope="module")
def blocks(tmp_path_factory):
    """The folder of a graph of 600 nodes."""
    return save_blocks(tmp_path_factory.mktemp("plain"), weighted=False)
