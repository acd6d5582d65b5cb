"""Embeddings layer by layer: every node exactly once per layer, whatever its neighbourhood."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from peg_core.atomic_file import write_array
from peg_core.graph.components import connected_components
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.node_features import POSITIONAL_KINDS, NodeFeatures, input_features
from peg_core.inference.layerwise_embedding import LayerwiseEmbedding
from peg_core.mapped_array import new_mapped_array
from peg_core.models.link_predictor import LinkPredictor
from peg_core.models.model_file import load_model
from workers.task_map import Result
from workers.tasks.encode import load_positions

# Rows of a first state in memory at a time.
STATE_ROWS = 65_536


@dataclass(frozen=True)
class EmbedRequest:
    """Which model embeds which graph.

    Args:
        graph: The edges that carry messages.
        features: What the model reads of the nodes.
        positions: Encodings of ``graph``.
        out: Folder for ``layer-<k>.npy``; the last layer is the embedding.
        dtype: Of the embedding, float32 or float16; layers below it are float32.
        rows_memory_bytes: What the rows of one step may take.
    """

    graph: Path
    features: Path
    positions: Path
    model: Path
    out: Path
    num_encodings: int
    dtype: str = "float32"
    rows_memory_bytes: int = 256 * 2**20


@dataclass(frozen=True)
class _Opened:
    """The artifacts of a request, memory-mapped."""

    graph: GraphStore
    features: NodeFeatures
    positions: list[npt.NDArray[np.float32]]
    model: LinkPredictor

    @classmethod
    def of(cls, request: EmbedRequest) -> _Opened:
        graph = GraphStore.open(request.graph)
        return cls(
            graph,
            NodeFeatures.open(request.features),
            load_positions(request.positions, request.num_encodings, num_nodes=graph.num_nodes),
            load_model(request.model),
        )

    @property
    def table_is_state(self) -> bool:
        """Whether the first layer reads the table of features and nothing else."""
        own = self.model.reads_positions or self.model.table is not None
        return self.features.table is not None and not (
            own or self.features.kind in POSITIONAL_KINDS
        )

    @torch.no_grad()
    def first_state(self, start: int, stop: int) -> npt.NDArray[np.float32]:
        rows = slice(start, stop)
        x = input_features(self.features, self.graph, self.positions, rows)
        read = self.positions if self.model.reads_positions else []
        positions = [torch.from_numpy(np.array(z[rows], dtype=np.float32)) for z in read]
        nodes = torch.arange(start, stop)
        return self.model.first_state(torch.from_numpy(x), positions, nodes).numpy()


def state_file(out: Path) -> Path:
    """What the first layer reads, where that is not the table of features itself."""
    return out / "state.npy"


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


def allocate_layers(request: EmbedRequest) -> tuple[int, bool]:
    """Make room for every layer; returns their number, and whether a first state is needed."""
    opened = _Opened.of(request)
    layers, num_nodes = opened.model.spec.layers, opened.graph.num_nodes
    request.out.mkdir(parents=True, exist_ok=True)
    for layer in range(layers):
        kind = request.dtype if layer == layers - 1 else "float32"
        _allocate(layer_file(request.out, layer), num_nodes, opened.model.state_width(layer), kind)
    if not opened.table_is_state:
        _allocate(state_file(request.out), num_nodes, opened.first_state(0, 1).shape[1], "float32")
    return layers, not opened.table_is_state


def state_task(request: EmbedRequest, start: int, stop: int) -> Result:
    """What the first layer reads of some nodes, written in place."""
    opened = _Opened.of(request)
    out = np.load(state_file(request.out), mmap_mode="r+")
    for first in range(start, stop, STATE_ROWS):
        last = min(first + STATE_ROWS, stop)
        out[first:last] = opened.first_state(first, last)
    out.flush()
    return {"nodes": stop - start}


def embed_task(request: EmbedRequest, layer: int, start: int, stop: int) -> Result:
    """Rows ``start .. stop`` of one layer, written in place; doing it twice changes nothing."""
    opened = _Opened.of(request)
    state: Any = opened.features.table
    if layer:
        state = np.load(layer_file(request.out, layer - 1), mmap_mode="r")
    elif not opened.table_is_state:
        state = np.load(state_file(request.out), mmap_mode="r")
    out = np.load(layer_file(request.out, layer), mmap_mode="r+")
    embedding = LayerwiseEmbedding(
        opened.model, opened.graph, opened.positions, request.rows_memory_bytes
    )
    embedding.fill(layer, state, start, stop, out)
    out.flush()
    return {"nodes": stop - start}


def _allocate(file: Path, num_nodes: int, width: int, kind: str) -> None:
    if not file.exists():
        shape = (num_nodes, width)
        new_mapped_array(file, shape, kind).flush()
