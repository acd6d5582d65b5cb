"""Embeddings layer by layer: every node exactly once per layer, whatever its neighbourhood."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from peg_core.atomic_file import write_array
from peg_core.graph.components import connected_components
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.node_features import NodeFeatures, input_features
from peg_core.models.message_graph import MessageGraph
from peg_core.models.model_file import load_model
from workers.encode_tasks import load_positions
from workers.task_map import Result


@dataclass(frozen=True)
class EmbedRequest:
    """Which model embeds which graph.

    Args:
        graph: The edges that carry messages.
        features: What the model reads of the nodes.
        positions: Encodings of ``graph``.
        out: Folder for ``layer-<k>.npy``; the last layer is the embedding.
        rows_memory_bytes: What the messages of one step may take.
    """

    graph: Path
    features: Path
    positions: Path
    model: Path
    out: Path
    num_encodings: int
    rows_memory_bytes: int = 256 * 2**20


def layer_file(out: Path, layer: int) -> Path:
    return out / f"layer-{layer}.npy"


def components_file(embeddings: Path) -> Path:
    """The components of the graph, beside its embeddings."""
    return embeddings.parent / "components.npy"


def components_task(request: EmbedRequest) -> Result:
    """The component of every node: heads read whether a pair lies in one."""
    count, labels = connected_components(GraphStore.open(request.graph))
    write_array(request.out / "components.npy", labels)
    return {"components": count}


def allocate_layers(request: EmbedRequest) -> int:
    """Make room for the output of every layer; returns the number of layers."""
    model = load_model(request.model)
    num_nodes = GraphStore.open(request.graph).num_nodes
    request.out.mkdir(parents=True, exist_ok=True)
    for layer in range(model.spec.layers):
        file = layer_file(request.out, layer)
        if not file.exists():
            shape = (num_nodes, model.state_width(layer))
            np.lib.format.open_memmap(file, "w+", dtype=np.float32, shape=shape).flush()
    return model.spec.layers


def embed_task(request: EmbedRequest, layer: int, start: int, stop: int) -> Result:
    """Rows ``start .. stop`` of one layer, written in place; doing it twice changes nothing."""
    graph = GraphStore.open(request.graph)
    features = NodeFeatures.open(request.features)
    positions = load_positions(request.positions, request.num_encodings, num_nodes=graph.num_nodes)
    model = load_model(request.model)
    degrees = graph.weighted_degrees
    before = np.load(layer_file(request.out, layer - 1), mmap_mode="r") if layer else None
    out = np.load(layer_file(request.out, layer), mmap_mode="r+")

    def rows_of(nodes: np.ndarray) -> torch.Tensor:
        if before is not None:
            return torch.from_numpy(before[nodes])
        x = torch.from_numpy(input_features(features, graph, positions, nodes))
        chosen = [torch.from_numpy(z[nodes]) for z in positions] if model.reads_positions else []
        return model.first_state(x, chosen, torch.from_numpy(nodes))

    width = model.spec.hidden if layer else model.spec.in_channels
    edges_per_step = max(1, request.rows_memory_bytes // (4 * max(width, model.spec.hidden)))
    for first, last in _steps(graph, start, stop, edges_per_step):
        messages = MessageGraph.of_rows(graph, first, last, positions, degrees, model.rule)
        with torch.no_grad():
            sources = messages.source_nodes
            x = (rows_of(sources), rows_of(np.arange(first, last)))
            out[first:last] = model.embed_layer(layer, x, messages).numpy()
    out.flush()
    return {"nodes": stop - start}


def _steps(graph: GraphStore, start: int, stop: int, edges: int) -> list[tuple[int, int]]:
    """Cut a range so that a step has about ``edges`` edges, at least one node."""
    work = graph.indptr[start : stop + 1] - graph.indptr[start] + np.arange(stop - start + 1)
    steps = []
    first = 0
    while first < stop - start:
        last = int(np.searchsorted(work, work[first] + edges, side="right")) - 1
        last = min(max(last, first + 1), stop - start)
        steps.append((start + first, start + last))
        first = last
    return steps
