"""Rows of edge lists as distinct entries of the adjacency matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from peg_core.graph.relations import Codes, Relations

Array = npt.NDArray[Any]
Duplicates = Literal["sum", "max", "first"]
COMBINE = {"sum": np.add, "max": np.maximum}
LATEST = np.iinfo(np.int64).max


@dataclass(frozen=True)
class EdgeKeys:
    """Rows in both directions: keys with the direction as their last bit, weights and times."""

    keys: Array
    weights: Array | None
    times: Array | None


@dataclass(frozen=True)
class Entries:
    """Distinct edges of a range, sorted: keys without direction, and what is known of each.

    Args:
        context_weights: What the relations that are not predicted weigh together.
    """

    keys: Array
    weights: Array | None
    times: Array | None
    codes: Codes | None = None
    context_weights: Array | None = None


def combine_rows(rows: EdgeKeys, duplicates: Duplicates) -> tuple[Entries, int]:
    """Distinct edges of the rows, and how many distinct (edge, direction) there are."""
    keys, weights, times = rows.keys, rows.weights, rows.times
    if weights is None and times is None:
        keys.sort()
        directed = int(np.count_nonzero(np.diff(keys, prepend=-1)))
        keys >>= 1
        return Entries(keys[np.diff(keys, prepend=-1) != 0], None, None), directed
    order = np.argsort(keys >> 1, kind="stable")
    keys = keys[order]
    edges = keys >> 1
    starts = np.flatnonzero(np.diff(edges, prepend=-1))
    return Entries(
        edges[starts],
        None if weights is None else _reduce(weights[order], starts, duplicates),
        None if times is None else _earliest(times[order], starts),
    ), _count_directions(keys & 1, starts)


def combine_relations(
    rows: EdgeKeys, numbers: Array, relations: Relations, duplicates: Duplicates
) -> tuple[Entries, int, int]:
    """Distinct edges of all relations together.

    Rows of one relation are combined as ``duplicates`` says; the weights of several relations
    are added up. The time of an edge is that of the predicted relation, where it has that.

    Args:
        numbers: The relation of every row.

    Returns:
        The edges; distinct (edge, direction) and distinct edges, counted relation by relation.
    """
    order = np.lexsort((numbers, rows.keys >> 1))
    keys, numbers = rows.keys[order], numbers[order]
    edges, directions = keys >> 1, keys & 1
    changes = np.diff(edges, prepend=-1) != 0
    lists = np.flatnonzero(changes | (np.diff(numbers.astype(np.int64), prepend=-1) != 0))
    starts = np.flatnonzero(changes[lists])
    predicted = numbers[lists] == relations.predicted
    weights = context = times = codes = None
    if rows.weights is not None:
        each = _reduce(rows.weights[order], lists, duplicates)
        weights = _reduce(each, starts, "sum")
        if len(relations.relations) > 1:
            context = _reduce(np.where(predicted, 0.0, each), starts, "sum")
    if rows.times is not None:
        each = _earliest(rows.times[order], lists)
        own = _earliest(np.where(predicted, each, LATEST), starts)
        has_own = _reduce(predicted.astype(np.uint8), starts, "max") > 0
        times = np.where(has_own, own, _earliest(each, starts))
    if relations.has_codes:
        bits = _bits(relations)[numbers, directions]
        firsts = np.flatnonzero(changes)
        codes = np.bitwise_or.reduceat(bits, firsts) if len(firsts) else bits
    found = Entries(edges[lists][starts], weights, times, codes, context)
    return found, _count_directions(directions, lists), len(lists)


def combine_entries(old: Entries, new: Entries, duplicates: Duplicates) -> Entries:
    """Two sorted lists of distinct edges as one; the old ones came first."""
    keys = np.concatenate([old.keys, new.keys])
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
    weights = times = None
    if old.weights is not None and new.weights is not None:
        weights = _reduce(np.concatenate([old.weights, new.weights])[order], starts, duplicates)
    if old.times is not None and new.times is not None:
        times = _earliest(np.concatenate([old.times, new.times])[order], starts)
    return Entries(keys[order][starts], weights, times)


def _bits(relations: Relations) -> Codes:
    """What a row adds to the code of an entry, [num_relations, directions]."""
    bits = [relations.bits(number) for number in range(len(relations.relations))]
    table = [
        pair if relation.directed else (sum(pair), sum(pair))
        for relation, pair in zip(relations.relations, bits, strict=True)
    ]
    return np.array(table, dtype=np.uint16)


def _count_directions(directions: Array, starts: Array) -> int:
    """How many distinct (edge, direction) there are among sorted rows."""
    if not len(starts):
        return 0
    seen = np.bitwise_or.reduceat(1 << directions, starts)
    return int(np.count_nonzero(seen & 1) + np.count_nonzero(seen & 2))


def _reduce(values: Array, starts: Array, duplicates: Duplicates) -> Array:
    if duplicates == "first" or not len(starts):
        return values[starts]
    return COMBINE[duplicates].reduceat(values, starts)


def _earliest(values: Array, starts: Array) -> Array:
    return np.minimum.reduceat(values, starts) if len(starts) else values
