"""Checks that the parameters of several encoders share."""

from __future__ import annotations

import math
from collections.abc import Sequence

from peg_core.encoding.laplacian_eigenmaps import WeightNotPositive
from peg_core.errors import GraphTooSmall
from peg_core.graph.graph_store import GraphStore


def require_at_least(parameters: object, names: Sequence[str], least: int) -> None:
    """Raise ValueError where a whole number is too small."""
    for name in names:
        value = getattr(parameters, name)
        if type(value) is not int or value < least:
            raise ValueError(f"{name} is {value!r}, needed is a whole number from {least} on")


def require_positive(parameters: object, names: Sequence[str]) -> None:
    """Raise ValueError where a number is not positive and finite."""
    for name in names:
        value = getattr(parameters, name)
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} is {value!r}, needed is a number above 0")


def require_choice(parameters: object, name: str, known: tuple[str, ...]) -> None:
    """Raise ValueError where a word is not one of the known ones."""
    if getattr(parameters, name) not in known:
        raise ValueError(f"{name} is {getattr(parameters, name)!r}, needed is one of {known}")


def require_walkable(graph: GraphStore) -> None:
    """Raise where walks are not defined: too few nodes, or weights that are no chances."""
    if graph.num_nodes < 2:
        raise GraphTooSmall.for_encoding(needed=2, found=graph.num_nodes)
    if graph.weights is not None and len(graph.weights) and float(graph.weights.min()) <= 0:
        raise WeightNotPositive.of(float(graph.weights.min()))
