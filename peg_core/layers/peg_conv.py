"""The PEG layer."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn import MessagePassing


class PEGConv(MessagePassing):
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
        num_distances: Distances per edge, one for every encoding.
        gate_hidden: Hidden width of phi.
        residual: Add a linear map of the node's own features.

    Shapes:
        x: [num_nodes, in_channels], or a pair (sources, targets) for a bipartite slice.
        edge_index: [2, num_edges], self-loops included.
        normalisation: [num_edges], the entries of A_hat.
        distances: [num_edges, num_distances].
        returns: [num_targets, out_channels].
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        num_distances: int = 1,
        gate_hidden: int = 32,
        residual: bool = False,
    ) -> None:
        super().__init__(aggr="add")
        self.linear = nn.Linear(in_channels, out_channels, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_channels))
        self.gate = nn.Sequential(
            nn.Linear(num_distances, gate_hidden),
            nn.ReLU(),
            nn.Linear(gate_hidden, 1),
            nn.Sigmoid(),
        )
        self.residual = nn.Linear(in_channels, out_channels, bias=False) if residual else None

    def forward(
        self,
        x: Tensor | tuple[Tensor, Tensor],
        edge_index: Tensor,
        normalisation: Tensor,
        distances: Tensor,
    ) -> Tensor:
        sources, targets = x if isinstance(x, tuple) else (x, x)
        coefficient = normalisation * self.gate(distances).squeeze(-1)  # [num_edges]
        out = self.propagate(
            edge_index,
            x=(self.linear(sources), None),
            coefficient=coefficient,
            size=(sources.shape[0], targets.shape[0]),
        )
        out = out + self.bias
        return out if self.residual is None else out + self.residual(targets)

    def message(self, x_j: Tensor, coefficient: Tensor) -> Tensor:
        return coefficient.unsqueeze(-1) * x_j
