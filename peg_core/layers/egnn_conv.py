"""The equivariant layer that also moves positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from peg_core.layers.neighbor_sum import NeighborSum

if TYPE_CHECKING:
    from peg_core.layers.message_graph import MessageGraph


class EGNNConv(NeighborSum):
    r"""`E(n)-equivariant message passing <https://arxiv.org/abs/2102.09844>`_ on positions.

    .. math::
        m_{uv} = \phi_e(x_u, x_v, \|z_u - z_v\|^2), \quad
        z'_u = z_u + \frac{1}{d_u} \sum_v (z_u - z_v)\, \phi_z(m_{uv}), \quad
        x'_u = \phi_x\big(x_u, \frac{1}{d_u} \sum_v m_{uv}\big)

    Rotating the positions of the input rotates those of the output and leaves the
    features as they are; adding a constant to all positions does the same.

    Args:
        in_channels: Width of the input features.
        out_channels: Width of the output.
        num_encodings: Encodings, each with a distance and a movement of its own.
        moves: Whether positions change; a last layer has no use for it.

    Shapes:
        sources, targets: features, [num_sources | num_targets, in_channels].
        source_positions, target_positions: a [num_sources | num_targets, p] per encoding.
        returns: features [num_targets, out_channels], positions [num_targets, p] per encoding.
    """

    def __init__(
        self, in_channels: int, out_channels: int, *, num_encodings: int = 1, moves: bool = True
    ) -> None:
        super().__init__()
        # phi_e's first matrix in parts: two are applied to nodes, not to edges
        self.edge_source = nn.Linear(in_channels, out_channels, bias=False)
        self.edge_target = nn.Linear(in_channels, out_channels)
        self.edge_distance = nn.Linear(num_encodings, out_channels, bias=False)
        self.edge_out = nn.Linear(out_channels, out_channels)
        self.movement = nn.Linear(out_channels, num_encodings) if moves else None
        self.node = nn.Sequential(
            nn.Linear(in_channels + out_channels, out_channels),
            nn.SiLU(),
            nn.Linear(out_channels, out_channels),
        )

    def forward(
        self,
        sources: Tensor,
        targets: Tensor,
        source_positions: Sequence[Tensor],
        target_positions: Sequence[Tensor],
        messages: MessageGraph,
    ) -> tuple[Tensor, list[Tensor]]:
        source, target = messages.sources.long(), messages.targets
        steps = [
            to[target] - origin[source]
            for to, origin in zip(target_positions, source_positions, strict=True)
        ]  # [num_edges, p] each
        squared = torch.stack([step.square().sum(-1) for step in steps], dim=-1)
        hidden = (
            self.edge_source(sources)[source]
            + self.edge_target(targets)[target]
            + self.edge_distance(squared)
        )
        message = nn.functional.silu(self.edge_out(nn.functional.silu(hidden)))
        weighted = message * messages.weights.unsqueeze(-1)
        out = self.node(torch.cat([targets, _sum_edges(weighted, messages)], dim=-1))
        if self.movement is None:
            return out, list(target_positions)
        # squashed and divided by the length, so that stacked layers cannot blow positions up
        movement = self.movement(message).tanh() * messages.weights.unsqueeze(-1) / (1 + squared)
        moved = [
            to + _sum_edges(step * movement[:, [k]], messages)
            for k, (to, step) in enumerate(zip(target_positions, steps, strict=True))
        ]
        return out, moved


def _sum_edges(values: Tensor, messages: MessageGraph) -> Tensor:
    """Sum the rows of each target's edges, [num_targets, width]."""
    out = values.new_zeros(messages.num_targets, values.shape[1])
    return out.index_add_(0, messages.targets, values)
