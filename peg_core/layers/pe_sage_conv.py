"""GraphSAGE with PEG's gate."""

from __future__ import annotations

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


class PESAGEConv(NeighbourSum):
    r"""The mean of the neighbours, each weighed by the distance of its position.

    PE-SAGE of `Equivariant and Stable Positional Encoding
    <https://arxiv.org/abs/2203.00199>`_ on `GraphSAGE <https://arxiv.org/abs/1706.02216>`_:

    .. math::
        x'_u = W_1 x_u + W_2 \frac{1}{d_u} \sum_{v \in N(u)} \phi(\|Z_u - Z_v\|)\, x_v + b

    Args:
        in_channels: Width of the input features.
        out_channels: Width of the output.
        num_measures: Numbers per edge that the gate reads, one for every encoding.
        edge_dim: Columns of ``edge_attr``, such as relations; the gate reads them beside these.
        measure: What the gate reads of two positions.

    Shapes:
        x: [num_nodes, in_channels].
        edge_index: [2, num_edges], undirected edges in both directions.
        positions: [num_nodes, p], or a list of them, one for every encoding.
        edge_weight: [num_edges].
        edge_attr: [num_edges, edge_dim].
        returns: [num_nodes, out_channels].
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        num_measures: int = 1,
        edge_dim: int = 0,
        measure: Measure = "distance",
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.num_measures, self.edge_dim = num_measures, edge_dim
        self.rule = EdgeRule(measure, "mean")
        self.own = nn.Linear(in_channels, out_channels)
        self.linear = nn.Linear(in_channels, out_channels, bias=False)
        self.gate = Gate(num_measures + edge_dim)

    def reset_parameters(self) -> None:
        """Draw all weights again, in the order of the constructor."""
        super().reset_parameters()
        self.own.reset_parameters()
        self.linear.reset_parameters()
        self.gate.reset_parameters()

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
        if len(sources) <= 2 * len(targets):
            mean = self.sum_neighbours(self.linear(sources), coefficients, messages)
        else:
            mean = self.linear(self.sum_neighbours(sources, coefficients, messages))
        return self.own(targets) + mean
