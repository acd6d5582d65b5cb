"""The equivariant layer that also moves positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from peg_core.layers.edge_rule import EdgeRule
from peg_core.layers.edge_tensors import (
    TensorPositions,
    edge_columns,
    edge_messages,
    position_list,
)
from peg_core.layers.message_graph import MessageGraph
from peg_core.layers.neighbour_sum import NeighbourSum


class EGNNConv(NeighbourSum):
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
        edge_dim: Columns of ``edge_attr``, such as relations, which phi_e reads, too.

    Shapes:
        x: [num_nodes, in_channels].
        edge_index: [2, num_edges], undirected edges in both directions.
        positions: [num_nodes, p], or a list of them, one for every encoding.
        edge_weight: [num_edges].
        edge_attr: [num_edges, edge_dim].
        returns: features [num_nodes, out_channels], and positions in the form they came in.
    """

    reads_reverse: ClassVar[bool] = False  # its messages are not linear in the sources

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        num_encodings: int = 1,
        moves: bool = True,
        edge_dim: int = 0,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.num_encodings, self.edge_dim = num_encodings, edge_dim
        self.rule = EdgeRule("squared", "mean")
        # phi_e's first matrix in parts: two are applied to nodes, not to edges
        self.edge_source = nn.Linear(in_channels, out_channels, bias=False)
        self.edge_target = nn.Linear(in_channels, out_channels)
        self.edge_distance = nn.Linear(num_encodings + edge_dim, out_channels, bias=False)
        self.edge_out = nn.Linear(out_channels, out_channels)
        self.movement = nn.Linear(out_channels, num_encodings) if moves else None
        self.node = nn.Sequential(
            nn.Linear(in_channels + out_channels, out_channels),
            nn.SiLU(),
            nn.Linear(out_channels, out_channels),
        )

    def reset_parameters(self) -> None:
        """Draw all weights again, in the order of the constructor."""
        super().reset_parameters()
        for part in (self.edge_source, self.edge_target, self.edge_distance, self.edge_out):
            part.reset_parameters()
        if self.movement is not None:
            self.movement.reset_parameters()
        for module in self.node:
            if isinstance(module, nn.Linear):
                module.reset_parameters()

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        positions: TensorPositions,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | list[Tensor]]:
        encodings = position_list(positions, num_encodings=self.num_encodings)
        attributes = edge_columns(edge_attr, edge_dim=self.edge_dim)
        messages = edge_messages(edge_index, encodings, self.rule, edge_weight, attributes)
        out, moved = self.pass_messages(x, x, encodings, encodings, messages)
        return out, moved[0] if isinstance(positions, Tensor) else moved

    def pass_messages(
        self,
        sources: Tensor,
        targets: Tensor,
        source_positions: Sequence[Tensor],
        target_positions: Sequence[Tensor],
        messages: MessageGraph,
    ) -> tuple[Tensor, list[Tensor]]:
        """The layer on prepared messages, as models call it.

        Args:
            sources, targets: Features, [num_sources | num_targets, in_channels].
            source_positions, target_positions: [num_sources | num_targets, p] per encoding.
            messages: Edges from sources to targets; of their measures only relations are read,
                distances are those of the positions here.

        Returns:
            Features [num_targets, out_channels], positions [num_targets, p] per encoding.
        """
        source, target = messages.sources.long(), messages.targets
        steps = [
            to[target] - origin[source]
            for to, origin in zip(target_positions, source_positions, strict=True)
        ]  # [num_edges, p] each
        squared = torch.stack([step.square().sum(-1) for step in steps], dim=-1)
        read = squared
        if self.edge_dim:
            read = torch.cat([squared, messages.measures[:, self.num_encodings :]], dim=-1)
        hidden = (
            self.edge_source(sources)[source]
            + self.edge_target(targets)[target]
            + self.edge_distance(read)
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
