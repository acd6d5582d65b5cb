"""The PEG layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from peg_core.layers.gate import Gate
from peg_core.layers.neighbor_sum import NeighborSum

if TYPE_CHECKING:
    from peg_core.layers.message_graph import MessageGraph


class PEGConv(NeighborSum):
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
        residual: Add a linear map of the node's own features.

    Shapes:
        sources: [num_sources, in_channels].
        targets: [num_targets, in_channels].
        returns: [num_targets, out_channels].
    """

    def __init__(
        self, in_channels: int, out_channels: int, *, num_measures: int = 1, residual: bool = False
    ) -> None:
        super().__init__()
        self.linear = nn.Linear(in_channels, out_channels, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_channels))
        self.gate = Gate(num_measures)
        self.residual = nn.Linear(in_channels, out_channels, bias=False) if residual else None

    def forward(self, sources: Tensor, targets: Tensor, messages: MessageGraph) -> Tensor:
        coefficients = messages.weights * self.gate(messages.measures)  # [num_edges]
        own = (messages.loop_weights * self.gate(messages.loop_measures)).unsqueeze(-1)
        # (A X) W = A (X W): the product is taken where there are fewer rows
        if len(sources) <= 2 * len(targets):
            out = self.sum_neighbors(self.linear(sources), coefficients, messages)
            out = out + own * self.linear(targets)
        else:
            out = self.sum_neighbors(sources, coefficients, messages)
            out = self.linear(out + own * targets)
        out = out + self.bias
        return out if self.residual is None else out + self.residual(targets)
