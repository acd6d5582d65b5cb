"""What several encoders ask of their parameters and of a graph."""

from __future__ import annotations

import math
from collections.abc import Sequence

from peg_core.errors import GraphTooSmall, PegError
from peg_core.graph.graph_store import GraphStore


def require_at_least(parameters: object, names: Sequence[str], least: int) -> None:
    """Raise ValueError where a whole number is too small."""
    for name in names:
        value = getattr(parameters, name)
        if type(value) is not int or value < least:
            raise ValueError(f"{name} is {value!r}, but must be a whole number, {least} or more")


def require_positive(parameters: object, names: Sequence[str]) -> None:
    """Raise ValueError where a number is not positive and finite."""
    for name in names:
        value = getattr(parameters, name)
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} is {value!r}, but must be a number above 0")


def require_choice(parameters: object, name: str, known: tuple[str, ...]) -> None:
    """Raise ValueError where a word is not one of the known ones."""
    if getattr(parameters, name) not in known:
        raise ValueError(f"{name} is {getattr(parameters, name)!r}, needed is one of {known}")


def require_encodable(graph: GraphStore) -> None:
    """Raise where no encoding is defined: too few nodes, or weights that are not positive."""
    if graph.num_nodes < 2:
        raise GraphTooSmall.for_encoding(needed=2, found=graph.num_nodes)
    if graph.weights is not None and len(graph.weights) and float(graph.weights.min()) <= 0:
        raise WeightNotPositive.of(float(graph.weights.min()))


class WeightNotPositive(PegError):
    """An edge weight that no encoder can use."""

    @classmethod
    def of(cls, weight: float) -> WeightNotPositive:
        return cls(
            f"the smallest edge weight is {weight}, needed are positive ones; "
            "drop such edges, or shift the weights before ingestion"
        )
