"""The PEG layer without weights of its own: neighbours are added as they are."""

from __future__ import annotations

from torch import Tensor

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


class LinearPEGConv(NeighbourSum):
    r"""A node's own row, and the weighted sum of its neighbours and itself.

    The propagation of `SGC <https://arxiv.org/abs/1902.07153>`_ with a residual; a gate on
    positions, as in `PEG <https://arxiv.org/abs/2203.00199>`_, may multiply its coefficients
    (without it :math:`\phi = 1`):

    .. math::
        X' = X + (\hat A \odot \Xi) X, \qquad \Xi_{uv} = \phi(\|Z_u - Z_v\|)

    Args:
        num_measures: Numbers per edge that the gate reads, one for every encoding.
        edge_dim: Columns of ``edge_attr``, such as relations; a gate reads them beside these.
        gated: Whether there is a gate.
        measure: What the gate reads of two positions.

    Shapes:
        x: [num_nodes, width].
        edge_index: [2, num_edges], undirected edges in both directions; self-loops are added.
        positions: [num_nodes, p], or a list of them, one for every encoding.
        edge_weight: [num_edges].
        edge_attr: [num_edges, edge_dim]; self-loops have zeros.
        returns: [num_nodes, width].
    """

    def __init__(
        self,
        *,
        num_measures: int = 1,
        edge_dim: int = 0,
        gated: bool = False,
        measure: Measure = "distance",
    ) -> None:
        super().__init__()
        self.num_measures, self.edge_dim = num_measures, edge_dim
        self.rule = EdgeRule(measure)
        self.gate = Gate(num_measures + edge_dim) if gated else None

    def reset_parameters(self) -> None:
        """Draw all weights again."""
        super().reset_parameters()
        if self.gate is not None:
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
            sources: [num_sources, width].
            targets: [num_targets, width].
            messages: Edges from sources to targets, weighed and measured.
        """
        coefficients, own = messages.weights, messages.loop_weights
        if self.gate is not None:
            coefficients = coefficients * self.gate(messages.measures)
            own = own * self.gate(messages.loop_measures)
        summed = self.sum_neighbours(sources, coefficients, messages)
        return summed + (1 + own).unsqueeze(-1) * targets
