"""phi: from what is measured of an edge to its weight."""

from __future__ import annotations

from torch import Tensor, nn

from peg_core.kernels.gate_kernel import GateFunction, can_gate


class Gate(nn.Sequential):
    """A small network R^k -> (0, 1), compiled on a CPU.

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

    def reset_parameters(self) -> None:
        for module in self:
            if isinstance(module, nn.Linear):
                module.reset_parameters()

    def forward(self, measures: Tensor) -> Tensor:
        if can_gate(measures):
            out: Tensor = GateFunction.apply(measures, *self.parameters())  # type: ignore[no-untyped-call]
            return out
        weight: Tensor = super().forward(measures)  # type: ignore[no-untyped-call]
        return weight.squeeze(-1)
