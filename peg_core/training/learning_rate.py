"""How the learning rate changes from epoch to epoch."""

from __future__ import annotations

from collections.abc import Callable

import torch


def constant(epoch: int, epochs: int) -> float:
    """The same in every epoch."""
    del epoch, epochs
    return 1.0


def linear(epoch: int, epochs: int) -> float:
    """Falls in equal steps; one more would be zero."""
    return 1 - epoch / epochs


# The share of the learning rate that an epoch takes.
SCHEDULES: dict[str, Callable[[int, int], float]] = {"constant": constant, "linear": linear}


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Let the next moves be of this size."""
    for group in optimizer.param_groups:
        group["lr"] = rate
