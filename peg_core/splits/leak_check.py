"""Proof by counting: held-out links are nowhere the model can learn from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.errors import LeakFound
from peg_core.graph.graph_store import GraphStore

IntArray = npt.NDArray[np.integer[Any]]
Pairs = tuple[IntArray, IntArray]


def count_leaks(graph: GraphStore, held_out: Mapping[str, Pairs]) -> dict[str, int]:
    """How many of the held-out links are edges of ``graph``, by name."""
    return {
        name: int(graph.contains(source, target).sum())
        for name, (source, target) in held_out.items()
    }


def require_no_leaks(
    graph: GraphStore, held_out: Mapping[str, Pairs], *, place: str
) -> dict[str, int]:
    """The counts, all zero, or :class:`LeakFound` naming the first that is not."""
    counts = count_leaks(graph, held_out)
    for part, count in counts.items():
        if count:
            raise LeakFound.of(part=part, place=place, count=count)
    return counts
