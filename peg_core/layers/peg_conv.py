"""The PEG layer."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from peg_core.layers.edge_rule import EdgeRule, Measure
from peg_core.layers.edge_tensors import (
    TensorPositions,
    edge_columns,
    edge_messages,
    position_list,
)
from peg_core.layers.gate import Gate
from peg_core.layers.message_graph import MessageGraph
from peg_core.layers.neighbour_sum import NeighbourSum


class PEGConv(NeighbourSum):
    r"""Message passing whose edge weights come from distances between positions.

    From `Equivariant and Stable Positional Encoding for More Powerful Graph Neural
    Networks <https://arxiv.org/abs/2203.00199>`_:

    .. math::
        X' = (\hat A \odot \Xi) X W, \qquad \Xi_{uv} = \phi(\|Z_u - Z_v\|)

    Positions are only measured, never transformed, so the output does not change
    when they are rotated or reflected.

    Args:
        in_channels: Width of the input features.
        out_channels: Width of the output.
        num_measures: Numbers per edge that the gate reads, one for every encoding.
        edge_dim: Columns of ``edge_attr``, such as relations; the gate reads them beside these.
        residual: Add a linear map of the node's own features.
        measure: What the gate reads of two positions.

    Shapes:
        x: [num_nodes, in_channels].
        edge_index: [2, num_edges], undirected edges in both directions; self-loops are added.
        positions: [num_nodes, p], or a list of them, one for every encoding.
        edge_weight: [num_edges].
        edge_attr: [num_edges, edge_dim]; self-loops have zeros.
        returns: [num_nodes, out_channels].
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        num_measures: int = 1,
        edge_dim: int = 0,
        residual: bool = False,
        measure: Measure = "distance",
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.num_measures, self.edge_dim, self.rule = num_measures, edge_dim, EdgeRule(measure)
        self.linear = nn.Linear(in_channels, out_channels, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_channels))
        self.gate = Gate(num_measures + edge_dim)
        self.residual = nn.Linear(in_channels, out_channels, bias=False) if residual else None

    def reset_parameters(self) -> None:
        """Draw all weights again, in the order of the constructor."""
        super().reset_parameters()
        self.linear.reset_parameters()
        nn.init.zeros_(self.bias)
        self.gate.reset_parameters()
        if self.residual is not None:
            self.residual.reset_parameters()

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        positions: TensorPositions,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
    ) -> Tensor:
        encodings = position_list(positions, num_encodings=self.num_measures)
        attributes = edge_columns(edge_attr, edge_dim=self.edge_dim)
        messages = edge_messages(edge_index, encodings, self.rule, edge_weight, attributes)
        return self.pass_messages(x, x, messages)

    def pass_messages(self, sources: Tensor, targets: Tensor, messages: MessageGraph) -> Tensor:
        """The layer on prepared messages, as models call it.

        Args:
            sources: [num_sources, in_channels].
            targets: [num_targets, in_channels].
            messages: Edges from sources to targets, weighed and measured.
        """
        coefficients = messages.weights * self.gate(messages.measures)  # [num_edges]
        own = (messages.loop_weights * self.gate(messages.loop_measures)).unsqueeze(-1)
        # (A X) W = A (X W): the product is taken where there are fewer rows
        if len(sources) <= 2 * len(targets):
            out = self.sum_neighbours(self.linear(sources), coefficients, messages)
            out = out + own * self.linear(targets)
        else:
            out = self.sum_neighbours(sources, coefficients, messages)
            out = self.linear(out + own * targets)
        out = out + self.bias
        return out if self.residual is None else out + self.residual(targets)
