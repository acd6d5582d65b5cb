"""Embeddings layer by layer: every node exactly once per layer, whatever its neighbourhood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
import numpy.typing as npt

from peg_core.artifacts.embedded_graph import Embeddings
from peg_core.artifacts.positions import Positions
from peg_core.artifacts.trained_model import TrainedModel
from peg_core.graph.components import connected_components
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.node_features import POSITIONAL_KINDS, NodeFeatures, input_features
from peg_core.storage.shared_array import write_rows
from workers.artifact_ref import ArtifactRef

if TYPE_CHECKING:
    from peg_core.models.link_predictor import LinkPredictor

# Rows of a first state in memory at a time.
STATE_ROWS = 65_536
# Values of the features that they are made of, 512 MB.
STATE_VALUES = 2**27


class ComponentsResult(TypedDict):
    components: int


class RowsResult(TypedDict):
    nodes: int


class LayoutResult(TypedDict):
    """Layers of the model, whether a first state is needed, and ranges of nodes."""

    nodes: int
    layers: int
    needs_state: bool
    ranges: list[tuple[int, int]]


@dataclass(frozen=True)
class EmbedRequest:
    """Which model embeds which graph.

    Args:
        graph: The edges that carry messages.
        features: What the model reads of the nodes.
        positions: Encodings of ``graph``.
        out: Where the layers go; the last layer is the embedding.
        dtype: Of the embedding, float32 or float16; layers below it are float32.
        rows_memory_bytes: What the rows of one step may take.
    """

    graph: ArtifactRef[GraphStore]
    features: ArtifactRef[NodeFeatures]
    positions: ArtifactRef[Positions]
    model: ArtifactRef[TrainedModel]
    out: ArtifactRef[Embeddings]
    dtype: str = "float32"
    rows_memory_bytes: int = 256 * 2**20


@dataclass(frozen=True)
class _Opened:
    """The artifacts of a request, memory-mapped."""

    graph: GraphStore
    features: NodeFeatures
    positions: list[npt.NDArray[np.float32]]
    model: LinkPredictor
    out: Embeddings

    @classmethod
    def of(cls, request: EmbedRequest) -> _Opened:
        graph = request.graph.open()
        return cls(
            graph,
            request.features.open(),
            request.positions.open().arrays(num_nodes=graph.num_nodes),
            request.model.open().network,
            request.out.open(),
        )

    @property
    def table_is_state(self) -> bool:
        """Whether the first layer reads the table of features and nothing else."""
        own = self.model.reads_positions or self.model.table is not None
        own = own or self.model.maps_features
        return self.features.table is not None and not (
            own or self.features.kind in POSITIONAL_KINDS
        )

    def first_state(self, start: int, stop: int) -> npt.NDArray[np.float32]:
        import torch

        rows = slice(start, stop)
        x = input_features(self.features, self.graph, self.positions, rows)
        read = self.positions if self.model.reads_positions else []
        positions = [torch.from_numpy(np.array(z[rows], dtype=np.float32)) for z in read]
        nodes = torch.arange(start, stop)
        with torch.no_grad():
            return self.model.first_state(torch.from_numpy(x), positions, nodes).numpy()


def components_task(request: EmbedRequest) -> ComponentsResult:
    """The component of every node: heads read whether a pair lies in one."""
    count, labels = connected_components(request.graph.open())
    request.out.open().write_components(labels)
    return {"components": count}


def layout_task(request: EmbedRequest, work_per_task: int) -> LayoutResult:
    """Make room for every layer, and cut the nodes into ranges of equal work."""
    opened = _Opened.of(request)
    out = opened.out
    layers, num_nodes = opened.model.spec.layers, opened.graph.num_nodes
    for layer in range(layers):
        kind = request.dtype if layer == layers - 1 else "float32"
        out.allocate(out.layer_file(layer), (num_nodes, opened.model.state_width(layer)), kind)
    if not opened.table_is_state:
        width = opened.first_state(0, 1).shape[1]
        out.allocate(out.state_file, (num_nodes, width), "float32")
    work = num_nodes + 2 * opened.graph.num_edges
    return {
        "nodes": num_nodes,
        "layers": layers,
        "needs_state": not opened.table_is_state,
        "ranges": opened.graph.balanced_ranges(-(-work // work_per_task)),
    }


def state_task(request: EmbedRequest, start: int, stop: int) -> RowsResult:
    """What the first layer reads of some nodes."""
    opened = _Opened.of(request)
    step = min(STATE_ROWS, max(1, STATE_VALUES // max(1, opened.features.width(opened.positions))))
    for first in range(start, stop, step):
        rows = opened.first_state(first, min(first + step, stop))
        write_rows(opened.out.state_file, first, rows)
    return {"nodes": stop - start}


def embed_task(request: EmbedRequest, layer: int, start: int, stop: int) -> RowsResult:
    """Rows ``start .. stop`` of one layer; doing it twice changes nothing."""
    opened = _Opened.of(request)
    state: Any = opened.features.table
    if layer:
        state = np.load(opened.out.layer_file(layer - 1), mmap_mode="r")
    elif not opened.table_is_state:
        state = np.load(opened.out.state_file, mmap_mode="r")
    from peg_core.inference.layerwise_embedding import LayerwiseEmbedding

    embedding = LayerwiseEmbedding(
        opened.model, opened.graph, opened.positions, request.rows_memory_bytes
    )
    for first, rows in embedding.rows(layer, state, start, stop):
        write_rows(opened.out.layer_file(layer), first, rows)
    return {"nodes": stop - start}
