"""Edges of one time on both sides of a boundary: there a split by time is drawn by lot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.errors import InputError
from peg_core.graph.graph_store import GraphStore
from peg_core.splits.entry_chunk import entry_chunks

Times = npt.NDArray[np.int64]
IntArray = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True)
class TimeTie:
    """Edges of one time, some of them in one part and some in the next.

    Args:
        time: As the store keeps it.
        older: How many of them are in the earlier part.
        newer: How many are in the later one.
    """

    time: int
    older: int
    newer: int


def require_times_that_differ(graph: GraphStore, times: IntArray) -> None:
    """Refuse times that say nothing about which link came first."""
    pieces = [times]
    if graph.codes is not None:
        chunks = (times[chunk.part][chunk.pairs] for chunk in entry_chunks(graph))
        pieces = [np.array([own.min(), own.max()]) for own in chunks if len(own)]
    first = min((int(own.min()) for own in pieces if len(own)), default=0)
    last = max((int(own.max()) for own in pieces if len(own)), default=1)
    if first == last:
        raise InputError(
            f"all {graph.num_linked_pairs:,} edges have the same time, {first}, a split by time "
            "needs at least two; name another column as `graph.time`, or set `split.by: random`"
        )


def find_tie(
    graph: GraphStore, times: IntArray, parts: npt.NDArray[np.uint8], older: int, newer: int
) -> TimeTie | None:
    """The tie between two parts; None where all of ``older`` came before all of ``newer``.

    Args:
        times: [2 * num_edges].
        parts: [2 * num_edges], the part of every entry.
        older: The part that should come first.
        newer: The part after it.
    """

    def of(part: int) -> Iterator[Times]:
        for chunk in entry_chunks(graph):
            chosen = times[chunk.part][chunk.upper & (parts[chunk.part] == part)]
            if len(chosen):
                yield chosen

    last = max((int(found.max()) for found in of(older)), default=None)
    first = min((int(found.min()) for found in of(newer)), default=None)
    if last is None or first is None or last < first:
        return None
    counts = [sum(int((found == last).sum()) for found in of(part)) for part in (older, newer)]
    return TimeTie(last, *counts)
