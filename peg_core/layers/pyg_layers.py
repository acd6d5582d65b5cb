"""PyG's own layers, called with prepared messages.

Weights, initialisation and the call in a notebook are PyG's. ``pass_messages`` reads the weights of
edges from the messages, which know the degrees of the whole graph: a sample of the neighbours or a
range of rows gives what the whole graph gives.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor
from torch_geometric.nn import GATConv, GCNConv, SAGEConv, TransformerConv

from peg_core.layers.gated_sum import GatedSum, can_sum
from peg_core.layers.general_propagation import GeneralPropagation
from peg_core.layers.message_graph import MessageGraph


class GCNLayer(GeneralPropagation, GCNConv):
    r"""``GCNConv``, from `GCN <https://arxiv.org/abs/1609.02907>`_.

    .. math::
        X' = \hat D^{-1/2} (A + I) \hat D^{-1/2} X W + b

    Shapes:
        sources [num_sources, in_channels], targets [num_targets, in_channels] ->
        [num_targets, out_channels].
    """

    reads_reverse: ClassVar[bool] = True

    def pass_messages(self, sources: Tensor, targets: Tensor, messages: MessageGraph) -> Tensor:
        """The layer on messages of the normalisation ``symmetric``."""
        sent: Tensor = self.lin(sources)
        if can_sum(sent):
            out: Tensor = GatedSum.apply(sent, messages.weights, messages)  # type: ignore[no-untyped-call]
        else:
            out = self.propagate(
                messages.edge_index,
                x=(sent, None),
                edge_weight=messages.weights,
                size=(messages.num_sources, messages.num_targets),
            )
        return out + messages.loop_weights.unsqueeze(-1) * self.lin(targets) + self.bias


class SAGELayer(GeneralPropagation, SAGEConv):
    r"""``SAGEConv`` with the mean, from `GraphSAGE <https://arxiv.org/abs/1706.02216>`_.

    .. math::
        x'_u = W_1 \frac{1}{d_u} \sum_{v \in N(u)} x_v + W_2 x_u + b

    Shapes:
        As :class:`GCNLayer`.
    """

    reads_reverse: ClassVar[bool] = True

    def pass_messages(self, sources: Tensor, targets: Tensor, messages: MessageGraph) -> Tensor:
        """The layer on messages of the normalisation ``mean``; a weighted mean if edges weigh."""
        if can_sum(sources):
            mean: Tensor = GatedSum.apply(sources, messages.weights, messages)  # type: ignore[no-untyped-call]
        else:
            rows = sources[messages.sources.long()] * messages.weights.unsqueeze(-1)
            mean = rows.new_zeros(len(targets), rows.shape[1])
            mean = mean.index_add(0, messages.targets, rows)
        out: Tensor = self.lin_l(mean) + self.lin_r(targets)
        return out


class GATLayer(GeneralPropagation, GATConv):
    r"""``GATConv``, from `Graph Attention Networks <https://arxiv.org/abs/1710.10903>`_.

    .. math::
        x'_u = \big\Vert_h \sum_{v \in N(u) \cup \{u\}} \alpha^h_{uv} W_h x_v + b, \qquad
        \alpha^h_{uv} = \mathrm{softmax}_v\big(\mathrm{LeakyReLU}(a_h^\top [W_h x_u, W_h x_v])\big)

    Attention is over the neighbours that are there: weights of edges are not read, and over a
    sample of the neighbours it is another softmax.

    Shapes:
        As :class:`GCNLayer`.
    """

    reads_reverse: ClassVar[bool] = False

    def __init__(self, in_channels: int, out_channels: int, *, heads: int) -> None:
        # loops are added here: targets need not be the first of the sources
        super().__init__(in_channels, out_channels // heads, heads=heads, add_self_loops=False)

    def pass_messages(self, sources: Tensor, targets: Tensor, messages: MessageGraph) -> Tensor:
        """The layer on messages of any normalisation."""
        own = torch.arange(messages.num_targets, device=targets.device)
        loops = torch.stack([own + messages.num_sources, own])
        edge_index = torch.cat([messages.edge_index, loops], dim=1)
        size = (messages.num_sources + messages.num_targets, messages.num_targets)
        state: Any = (torch.cat([sources, targets]), targets)
        out: Tensor = self(state, edge_index, size=size)
        return out


class TransformerLayer(GeneralPropagation, TransformerConv):
    r"""``TransformerConv`` without its own residual: scaled dot-product attention over neighbours.

    .. math::
        x'_u = \big\Vert_h \sum_{v \in N(u)}
        \mathrm{softmax}_v\Big(\frac{(Q_h x_u)^\top K_h x_v}{\sqrt{c}}\Big) V_h x_v

    A node without a neighbour gets zeros.

    Shapes:
        As :class:`GCNLayer`.
    """

    reads_reverse: ClassVar[bool] = False

    def __init__(self, in_channels: int, out_channels: int, *, heads: int) -> None:
        super().__init__(in_channels, out_channels // heads, heads=heads, root_weight=False)
        self.lin_skip = None  # PyG makes it all the same; a weight without a gradient stops DDP

    def reset_parameters(self) -> None:
        """Draw all weights again."""
        for part in (self.lin_key, self.lin_query, self.lin_value):
            part.reset_parameters()

    def pass_messages(self, sources: Tensor, targets: Tensor, messages: MessageGraph) -> Tensor:
        """The layer on messages of any normalisation."""
        state: Any = (sources, targets)
        out: Tensor = self(state, messages.edge_index)
        return out
