"""Embeddings of all nodes, layer by layer, in one process."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from peg_core.models.link_predictor import LinkPredictor
from peg_core.models.message_graph import MessageGraph
from peg_core.training.graph_view import GraphView

# What the messages of one step may take.
ROWS_BYTES = 256 * 2**20


@torch.no_grad()
def embed_in_layers(
    model: LinkPredictor, view: GraphView, device: torch.device
) -> npt.NDArray[np.float32]:
    """Every node once per layer with all its neighbours, [num_nodes, hidden]."""
    graph = view.graph
    degrees = graph.weighted_degrees
    before: npt.NDArray[np.float32] | None = None

    def rows_of(nodes: npt.NDArray[np.int64]) -> Tensor:
        if before is not None:
            return torch.from_numpy(before[nodes]).to(device)
        x, positions = view.node_inputs(nodes)
        which = torch.from_numpy(nodes).to(device)
        return model.first_state(x.to(device), [z.to(device) for z in positions], which)

    width = max(model.spec.in_channels, *map(model.state_width, range(model.spec.layers)))
    work = graph.num_nodes + 2 * graph.num_edges
    parts = -(-work * 4 * width // ROWS_BYTES)
    for layer in range(model.spec.layers):
        out = np.empty((graph.num_nodes, model.state_width(layer)), dtype=np.float32)
        for start, stop in graph.balanced_ranges(parts):
            messages = MessageGraph.of_rows(graph, start, stop, view.positions, degrees, model.rule)
            state = (rows_of(messages.source_nodes), rows_of(np.arange(start, stop)))
            out[start:stop] = model.embed_layer(layer, state, messages.to(device)).cpu().numpy()
        before = out
    assert before is not None
    return before
