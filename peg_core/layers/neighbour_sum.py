"""What the layers share: a weighted sum over neighbours."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from peg_core.layers.gated_sum import GatedSum, can_sum
from peg_core.layers.general_propagation import GeneralPropagation, MessagePassing
from peg_core.layers.message_graph import MessageGraph


class NeighbourSum(GeneralPropagation, MessagePassing):
    """Message passing with one weight per edge: compiled on a CPU, PyG's own elsewhere.

    ``reads_reverse`` says whether the compiled gradients read the edges by their source.
    """

    reads_reverse: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__(aggr="add")

    def sum_neighbours(self, x: Tensor, coefficients: Tensor, messages: MessageGraph) -> Tensor:
        """``out[t] = sum_e c_e x[s_e]``, [num_targets, width].

        Args:
            x: [num_sources, width].
            coefficients: [num_edges].
            messages: The edges.
        """
        if can_sum(x):
            out: Tensor = GatedSum.apply(x, coefficients, messages)  # type: ignore[no-untyped-call]
            return out
        size = (messages.num_sources, messages.num_targets)
        summed: Tensor = self.propagate(
            messages.edge_index, x=(x, None), coefficients=coefficients, size=size
        )
        return summed

    def message(self, x_j: Tensor, coefficients: Tensor) -> Tensor:
        return coefficients.unsqueeze(-1) * x_j
