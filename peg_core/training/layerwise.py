"""Embeddings of all nodes, layer by layer, in one process."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from peg_core.inference.layerwise_embedding import LayerwiseEmbedding
from peg_core.models.link_predictor import LinkPredictor
from peg_core.training.graph_view import GraphView


@torch.no_grad()
def embed_in_layers(model: LinkPredictor, view: GraphView) -> npt.NDArray[np.float32]:
    """Every node once per layer with all its neighbours, [num_nodes, hidden], on the CPU."""
    embedding = LayerwiseEmbedding(model, view.graph, view.positions)
    state = model.first_state(*view.node_inputs()).numpy()
    for layer in range(model.spec.layers):
        out = np.empty((view.graph.num_nodes, model.state_width(layer)), dtype=np.float32)
        embedding.fill(layer, state, 0, view.graph.num_nodes, out)
        state = out
    return state
