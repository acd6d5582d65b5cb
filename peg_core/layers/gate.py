"""phi: from what is measured of an edge to its weight."""

from __future__ import annotations

from torch import Tensor, nn


class Gate(nn.Sequential):
    """A small network R^k -> (0, 1).

    Args:
        num_measures: k, one for every encoding.
        hidden: Width between.

    Shapes:
        [num_edges, num_measures] -> [num_edges].
    """

    def __init__(self, num_measures: int, hidden: int = 32) -> None:
        super().__init__(
            nn.Linear(num_measures, hidden), nn.ReLU(), nn.Linear(hidden, 1), nn.Sigmoid()
        )

    def forward(self, measures: Tensor) -> Tensor:
        weight: Tensor = super().forward(measures)  # type: ignore[no-untyped-call]
        return weight.squeeze(-1)
