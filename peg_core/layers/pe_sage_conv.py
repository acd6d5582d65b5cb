"""GraphSAGE with PEG's gate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor, nn

from peg_core.layers.gate import Gate
from peg_core.layers.neighbor_sum import NeighborSum

if TYPE_CHECKING:
    from peg_core.layers.message_graph import MessageGraph


class PESAGEConv(NeighborSum):
    r"""The mean of the neighbours, each weighed by the distance of its position.

    PE-SAGE of `Equivariant and Stable Positional Encoding
    <https://arxiv.org/abs/2203.00199>`_ on `GraphSAGE <https://arxiv.org/abs/1706.02216>`_:

    .. math::
        x'_u = W_1 x_u + W_2 \frac{1}{d_u} \sum_{v \in N(u)} \phi(\|Z_u - Z_v\|)\, x_v + b

    Args:
        in_channels: Width of the input features.
        out_channels: Width of the output.
        num_measures: Numbers per edge that the gate reads, one for every encoding.

    Shapes:
        sources: [num_sources, in_channels].
        targets: [num_targets, in_channels].
        returns: [num_targets, out_channels].
    """

    def __init__(self, in_channels: int, out_channels: int, *, num_measures: int = 1) -> None:
        super().__init__()
        self.own = nn.Linear(in_channels, out_channels)
        self.linear = nn.Linear(in_channels, out_channels, bias=False)
        self.gate = Gate(num_measures)

    def forward(self, sources: Tensor, targets: Tensor, messages: MessageGraph) -> Tensor:
        coefficients = messages.weights * self.gate(messages.measures)  # [num_edges]
        if len(sources) <= 2 * len(targets):
            mean = self.sum_neighbors(self.linear(sources), coefficients, messages)
        else:
            mean = self.linear(self.sum_neighbors(sources, coefficients, messages))
        return self.own(targets) + mean
