"""P-GNN, the position-aware graph neural network."""

from __future__ import annotations

from typing import ClassVar, cast

from torch import Tensor, nn
from torch.nn import functional

from peg_core.errors import ConfigError
from peg_core.graph.graph_store import GraphStore
from peg_core.layers.anchor_messages import anchor_messages, anchor_sets
from peg_core.layers.edge_rule import EdgeRule
from peg_core.layers.message_graph import MessageGraph, Positions
from peg_core.layers.pgnn_conv import PGNNConv
from peg_core.models.baselines.feature_model import FeatureModel, layer_widths
from peg_core.models.link_predictor import State
from peg_core.models.model_spec import ModelSpec

# The messages of one layer, 4 bytes a value; training holds about three times as much a layer.
MOST_BYTES = 10**9


class PGNN(FeatureModel):
    r"""`Position-aware Graph Neural Networks <https://arxiv.org/abs/1906.04817>`_.

    There are `hidden` anchor sets of a half, a quarter, ... of the nodes in turn; an embedding has
    one number for each of them, scaled to length 1 together, see :class:`PGNNConv`. Distances are
    those in the graph that carries messages, and end after four edges.

    Every node hears anchors from anywhere: it is trained on whole graphs alone, and on those whose
    messages fit into memory. The sets are drawn by the numbers of the nodes.
    """

    is_local = False
    hops: ClassVar[int] = 4

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        self.rule = EdgeRule(normalisation="mean")
        self.layers = nn.ModuleList(
            PGNNConv(*widths, last=layer == spec.layers - 1)
            for layer, widths in enumerate(layer_widths(spec))
        )

    def whole_messages(self, graph: GraphStore, positions: Positions) -> MessageGraph:
        del positions
        sets, nodes = self.spec.hidden, graph.num_nodes
        needed = 4 * nodes * sets * sets
        if needed > MOST_BYTES:
            raise ConfigError(
                f"p_gnn would send {nodes:,} nodes {sets:,} messages of {sets:,} numbers, "
                f"{needed / 1e9:.1f} GB a layer, at most {MOST_BYTES / 1e9:.0f} GB are allowed: "
                f"{MOST_BYTES // (4 * sets * sets):,} nodes; lower `model.hidden`, or use another "
                "model"
            )
        return anchor_messages(graph, anchor_sets(nodes, sets), hops=self.hops)

    def embed_layer(self, layer: int, state: State, messages: MessageGraph) -> Tensor:
        sources, targets = self.ends(layer, state, messages)
        convolution = cast(PGNNConv, self.layers[layer])
        out = convolution.pass_messages(sources, targets, messages)
        return out if layer < len(self.layers) - 1 else functional.normalize(out, dim=-1)
