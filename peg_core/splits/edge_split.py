"""Which edges train, validate and test.

A part is given to every entry of the graph, the same to both entries of an edge. Entries
are read in pieces: memory does not grow with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.errors import GraphTooSmall
from peg_core.graph.graph_store import GraphStore
from peg_core.splits.entry_chunk import EntryChunk, find_entries, hashed_chunks
from peg_core.splits.order_statistic import kth_smallest

IntArray = npt.NDArray[np.integer[Any]]
Parts = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
TRAIN, VALID, TEST = 0, 1, 2

# Edges whose folds are found at once.
MOST_RANKED = 2**23


def split_randomly(
    graph: GraphStore, node_keys: IntArray, out: Parts, *, valid: float, test: float, seed: int
) -> None:
    """Write the part of every entry to ``out``; exact shares, whatever the order of the nodes.

    Args:
        node_keys: [num_nodes], what a node is known by.
        out: [2 * num_edges].
    """

    def chunks() -> Iterator[tuple[EntryChunk, Words]]:
        return hashed_chunks(graph, node_keys, seed=seed, purpose="edge split")

    def upper() -> Iterator[Words]:
        return (hashes[chunk.upper] for chunk, hashes in chunks())

    num_test, num_valid = _counts(graph.num_edges, valid=valid, test=test)
    last_test, last_valid = (kth_smallest(upper, k - 1) for k in (num_test, num_test + num_valid))
    for chunk, hashes in chunks():
        out[chunk.part] = np.where(
            hashes <= last_test, TEST, np.where(hashes <= last_valid, VALID, TRAIN)
        )


def split_by_time(
    graph: GraphStore,
    node_keys: IntArray,
    times: IntArray,
    out: Parts,
    *,
    valid: float,
    test: float,
    seed: int,
) -> None:
    """The newest edges test, those before them validate; ties go by the hash of the pair.

    Args:
        node_keys: [num_nodes], what a node is known by.
        times: [2 * num_edges].
        out: [2 * num_edges].
    """

    def chunks() -> Iterator[tuple[EntryChunk, Words, Words]]:
        for chunk, hashes in hashed_chunks(graph, node_keys, seed=seed, purpose="edge split"):
            yield chunk, _newest_first(times[chunk.part]), ~hashes

    def set_aside(count: int) -> tuple[np.uint64, np.uint64]:
        """Age and tie of the last of so many edges."""

        def ages() -> Iterator[Words]:
            return (age[chunk.upper] for chunk, age, _ in chunks())

        def ties() -> Iterator[Words]:
            return (tie[chunk.upper & (age == last)] for chunk, age, tie in chunks())

        last = kth_smallest(ages, count - 1)
        newer = sum(int((age < last).sum()) for age in ages())
        return last, kth_smallest(ties, count - 1 - newer)

    num_test, num_valid = _counts(graph.num_edges, valid=valid, test=test)
    limits = {TEST: set_aside(num_test), VALID: set_aside(num_test + num_valid)}
    for chunk, age, tie in chunks():
        out[chunk.part] = TRAIN
        for part in (VALID, TEST):
            last_age, last_tie = limits[part]
            chosen = (age < last_age) | ((age == last_age) & (tie <= last_tie))
            out[chunk.part][chosen] = part


def assign_folds(
    graph: GraphStore, node_keys: IntArray, out: Parts, *, folds: int, seed: int
) -> npt.NDArray[np.int64]:
    """Write the fold of every entry to ``out``; sizes differ by one at most.

    Edges are numbered in the order of their hashes, a range of hashes at a time.

    Args:
        node_keys: [num_nodes], what a node is known by.
        out: [2 * num_edges].

    Returns:
        Edges of each fold, [folds].
    """
    ranges = max(1, -(-graph.num_edges // MOST_RANKED))
    bounds = [(number * 2**64) // ranges for number in range(ranges + 1)]
    rank = 0
    for low, high in pairwise(bounds):
        chunks = hashed_chunks(graph, node_keys, seed=seed, purpose="folds")
        hashes, entries, rows = _edges_between(chunks, low, high - 1)
        order = np.argsort(hashes, kind="stable")
        fold = np.empty(len(order), dtype=np.uint8)
        fold[order] = (rank + np.arange(len(order))) % folds
        out[entries] = fold
        out[find_entries(graph, graph.indices[entries], rows)] = fold
        rank += len(order)
    numbers = np.arange(folds)
    return rank // folds + (numbers < rank % folds)


def _edges_between(
    chunks: Iterator[tuple[EntryChunk, Words]], low: int, high: int
) -> tuple[Words, npt.NDArray[np.int64], IntArray]:
    """Hash, entry and row of the edges whose hash lies in a range."""
    found: list[tuple[Words, npt.NDArray[np.int64], IntArray]] = []
    for chunk, hashes in chunks:
        inside = (hashes >= np.uint64(low)) & (hashes <= np.uint64(high))
        places = np.flatnonzero(chunk.upper & inside)
        found.append((hashes[places], chunk.part.start + places, chunk.rows[places]))
    together = (np.concatenate(column) for column in zip(*found, strict=True))
    return tuple(together)  # type: ignore[return-value]


def _newest_first(times: IntArray) -> Words:
    """Numbers without a sign that are smaller the larger the time."""
    return ~(times.astype(np.int64).view(np.uint64) ^ np.uint64(2**63))


def _counts(total: int, *, valid: float, test: float) -> tuple[int, int]:
    """Edges to test and to validate with."""
    num_test, num_valid = round(test * total), round(valid * total)
    for part, ratio, count in (("test", test, num_test), ("valid", valid, num_valid)):
        if not count:
            raise GraphTooSmall.for_split(part=part, ratio=ratio, edges=total)
    if num_test + num_valid >= total:
        raise GraphTooSmall.for_split(part="train", ratio=1 - valid - test, edges=total)
    return num_test, num_valid
