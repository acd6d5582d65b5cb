"""Which edges train, validate and test.

A part is given to every entry of the graph, the same to both entries of an edge. Entries
are read in pieces: memory does not grow with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.errors import GraphTooSmall
from peg_core.graph.graph_store import GraphStore
from peg_core.splits.entry_chunk import EntryChunk, entry_chunks, find_entries, hashed_chunks
from peg_core.splits.order_statistic import Key, Keys, kth_smallest
from peg_core.splits.time_ties import require_times_that_differ

IntArray = npt.NDArray[np.integer[Any]]
Parts = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
# Edges that are left out came after all others: a split of an earlier day does without them.
# Those of other relations than the predicted one are context, and never held out.
TRAIN, VALID, TEST, LEFT_OUT, CONTEXT = 0, 1, 2, 3, 4
# In place of the hash of an edge that is some node's last.
SPARED = np.uint64(2**64 - 1)
# The fold of an entry that supervises nothing.
CONTEXT_FOLD = 255
# The purpose of the hashes that folds go by.
FOLDS = "folds"

# Edges whose folds are found at once.
MOST_RANKED = 2**23


@dataclass(frozen=True)
class EdgeOrder:
    """In which order edges are set aside: first those that test, then those that validate.

    By the hash of the pair; or the newest first, and by the hash where times are the same.

    Args:
        graph: Whose edges.
        node_keys: [num_nodes], what a node is known by.
        seed: Of the hashes.
        times: [2 * num_edges], or None.
        last: [num_nodes], the hash of each node's edge that is set aside after all edges that are
            nobody's last; None: no edge is spared.
    """

    graph: GraphStore
    node_keys: IntArray
    seed: int
    times: IntArray | None = None
    last: Words | None = None

    @property
    def words(self) -> int:
        """Of a key."""
        return 1 if self.times is None else 2

    def chunks(self, span: slice | None = None) -> Iterator[tuple[EntryChunk, Keys]]:
        """Entries of a range, or all, with their keys: the smallest is set aside first."""
        hashed = hashed_chunks(
            self.graph, self.node_keys, span, seed=self.seed, purpose="edge split"
        )
        for chunk, hashes in hashed:
            if self.last is not None:
                columns = self.graph.indices[chunk.part]
                spared = (hashes >= self.last[chunk.rows]) | (hashes >= self.last[columns])
                hashes = np.where(spared, SPARED, hashes)
            if self.times is None:
                yield chunk, [hashes]
            else:
                yield chunk, [_newest_first(self.times[chunk.part]), ~hashes]

    def edge_keys(self, span: slice | None = None) -> Iterator[Keys]:
        """The keys alone, once for every pair that is linked."""
        for chunk, keys in self.chunks(span):
            yield [word[chunk.pairs] for word in keys]

    def parts(
        self, last: Mapping[int, Key], span: slice | None = None
    ) -> Iterator[tuple[slice, Parts]]:
        """Entries of a range, or all, with their parts, by the keys of the last of each part."""
        for chunk, keys in self.chunks(span):
            own = parts_of(keys, last)
            if chunk.linked is not None:
                own[~chunk.linked] = CONTEXT
            yield chunk.part, own


def split_randomly(
    graph: GraphStore,
    node_keys: IntArray,
    out: Parts,
    *,
    valid: float,
    test: float,
    seed: int,
    keep_connected: bool = False,
) -> None:
    """Write the part of every entry to ``out``; exact shares, whatever the order of the nodes.

    Args:
        node_keys: [num_nodes], what a node is known by.
        out: [2 * num_edges].
        keep_connected: Leave every node one training edge: the one of the largest hash.
    """
    order = EdgeOrder(graph, node_keys, seed)
    if keep_connected:
        order = replace(order, last=last_edges(order))
        require_enough_spare(order, valid=valid, test=test)
    _split(order, out, valid=valid, test=test)


def last_edges(order: EdgeOrder) -> Words:
    """The largest hash among the edges of every node, context included, [num_nodes]."""
    last = np.zeros(order.graph.num_nodes, dtype=np.uint64)
    for chunk, (hashes,) in order.chunks():
        np.maximum.at(last, chunk.rows, hashes)
    return last


def require_enough_spare(order: EdgeOrder, *, valid: float, test: float) -> None:
    """Refuse shares that would take some node's last edge."""
    pairs = order.graph.num_linked_pairs
    spare = sum(int(np.count_nonzero(keys != SPARED)) for (keys,) in order.edge_keys())
    needed = round(valid * pairs) + round(test * pairs)
    if needed > spare:
        raise GraphTooSmall.for_connected(needed=needed, spare=spare, edges=pairs)


def split_by_time(
    graph: GraphStore,
    node_keys: IntArray,
    times: IntArray,
    out: Parts,
    *,
    valid: float,
    test: float,
    seed: int,
    leave_out: float = 0.0,
) -> None:
    """The newest edges test, those before them validate; ties go by the hash of the pair.

    Args:
        node_keys: [num_nodes], what a node is known by.
        times: [2 * num_edges].
        out: [2 * num_edges].
        leave_out: Share of the edges, the newest of all, that are in no part.
    """
    require_times_that_differ(graph, times)
    order = EdgeOrder(graph, node_keys, seed, times)
    _split(order, out, valid=valid, test=test, leave_out=leave_out)


def _split(
    order: EdgeOrder, out: Parts, *, valid: float, test: float, leave_out: float = 0.0
) -> None:
    pairs = order.graph.num_linked_pairs
    ranks = last_ranks(pairs, valid=valid, test=test, leave_out=leave_out)
    last = {
        part: kth_smallest(order.edge_keys, rank, words=order.words) for part, rank in ranks.items()
    }
    for part, own in order.parts(last):
        out[part] = own


def mark_training(graph: GraphStore, out: Parts) -> None:
    """Write to ``out`` [2 * num_edges] that every link trains."""
    out[:] = TRAIN
    if graph.codes is not None:
        for chunk in entry_chunks(graph):
            if chunk.linked is not None:
                out[chunk.part][~chunk.linked] = CONTEXT


def last_ranks(
    num_edges: int, *, valid: float, test: float, leave_out: float = 0.0
) -> dict[int, int]:
    """The place of the last edge of each part in the order in which they are set aside."""
    num_test, num_valid = round(test * num_edges), round(valid * num_edges)
    num_left_out = round(leave_out * num_edges)
    for part, ratio, count in (("test", test, num_test), ("valid", valid, num_valid)):
        if not count:
            raise GraphTooSmall.for_split(part=part, ratio=ratio, edges=num_edges)
    set_aside = num_left_out + num_test + num_valid
    if set_aside >= num_edges:
        ratio = 1 - valid - test - leave_out
        raise GraphTooSmall.for_split(part="train", ratio=ratio, edges=num_edges)
    ranks = {TEST: num_left_out + num_test - 1, VALID: set_aside - 1}
    return {**ranks, LEFT_OUT: num_left_out - 1} if num_left_out else ranks


def parts_of(keys: Keys, last: Mapping[int, Key]) -> Parts:
    """The part of every key, by the keys of the last edge of each part."""
    parts = np.full(len(keys[0]), TRAIN, dtype=np.uint8)
    for part in (VALID, TEST, LEFT_OUT):
        if part in last:
            parts[_not_after(keys, last[part])] = part
    return parts


def _not_after(keys: Keys, bound: Key) -> npt.NDArray[np.bool_]:
    limits = [np.uint64(word) for word in bound]
    found: npt.NDArray[np.bool_] = keys[-1] <= limits[-1]
    for word, limit in zip(reversed(keys[:-1]), reversed(limits[:-1]), strict=True):
        found = (word < limit) | ((word == limit) & found)
    return found


def assign_folds(
    graph: GraphStore, node_keys: IntArray, out: Parts, *, folds: int, seed: int
) -> npt.NDArray[np.int64]:
    """Write the fold of every entry to ``out``; sizes differ by one pair at most.

    Linked pairs are numbered in the order of their hashes, a range of hashes at a time.

    Args:
        node_keys: [num_nodes], what a node is known by.
        out: [2 * num_edges].

    Returns:
        Linked pairs of each fold, [folds].
    """
    bounds = [*hash_bounds(graph.num_linked_pairs), 2**64]
    rank = 0
    if graph.codes is not None:
        out[:] = CONTEXT_FOLD
    for low, high in pairwise(bounds):
        chunks = hashed_chunks(graph, node_keys, seed=seed, purpose=FOLDS)
        hashes, entries, rows = _edges_between(chunks, low, high - 1)
        fold = folds_in_order(hashes, rank, folds)
        out[entries] = fold
        out[find_entries(graph, graph.indices[entries], rows)] = fold
        rank += len(fold)
    return fold_sizes(rank, folds)


def hash_bounds(num_edges: int) -> list[int]:
    """The first hash of each range of them; a range has about MOST_RANKED edges at most."""
    ranges = max(1, -(-num_edges // MOST_RANKED))
    return [(number * 2**64) // ranges for number in range(ranges)]


def folds_in_order(hashes: Words, rank: int, folds: int) -> Parts:
    """The fold of every edge of a range of hashes, dealt in their order.

    Args:
        hashes: [num_edges]; edges with the same hash stand in the order of the graph.
        rank: Edges with a smaller hash.
        folds: How many.
    """
    order = np.argsort(hashes, kind="stable")
    fold = np.empty(len(order), dtype=np.uint8)
    turn = np.roll(np.arange(folds, dtype=np.uint8), -(rank % folds))
    fold[order] = np.resize(turn, len(order))
    return fold


def fold_sizes(num_edges: int, folds: int) -> npt.NDArray[np.int64]:
    """Edges of each fold, [folds]."""
    return num_edges // folds + (np.arange(folds) < num_edges % folds)


def _edges_between(
    chunks: Iterator[tuple[EntryChunk, Words]], low: int, high: int
) -> tuple[Words, npt.NDArray[np.int64], IntArray]:
    """Hash, entry and row of the edges whose hash lies in a range."""
    found: list[tuple[Words, npt.NDArray[np.int64], IntArray]] = []
    for chunk, hashes in chunks:
        inside = (hashes >= np.uint64(low)) & (hashes <= np.uint64(high))
        indices = np.flatnonzero(chunk.pairs & inside)
        found.append((hashes[indices], chunk.part.start + indices, chunk.rows[indices]))
    together = (np.concatenate(column) for column in zip(*found, strict=True))
    return tuple(together)  # type: ignore[return-value]


def _newest_first(times: IntArray) -> Words:
    """Numbers without a sign that are smaller the larger the time."""
    return ~(times.astype(np.int64).view(np.uint64) ^ np.uint64(2**63))
