"""The entries of a graph, read in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import GraphStore
from peg_core.kernels.sorted_rows import entry_index
from peg_core.splits.pair_hash import hash_key, hash_one

IntArray = npt.NDArray[np.integer[Any]]
Words = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

# Entries that are looked at together.
CHUNK = 2**22


@dataclass(frozen=True)
class EntryChunk:
    """Consecutive entries of a graph.

    Args:
        part: Which of the entries these are.
        rows: [num_entries], the node that has the entry; ``indices`` names the other one.
        upper: [num_entries], whether it is the smaller one: true for one entry of every edge.
        linked: [num_entries], whether the two have a link of the predicted relation; None where
            all entries do.
    """

    part: slice
    rows: IntArray
    upper: Mask
    linked: Mask | None = None

    @cached_property
    def pairs(self) -> Mask:
        """One entry of every pair with a link of the predicted relation, [num_entries]."""
        return self.upper if self.linked is None else self.upper & self.linked


def entry_ranges(num_entries: int, most: int) -> list[slice]:
    """Ranges of at most so many entries, one task's work each; they depend on the graph alone."""
    return [slice(first, min(first + most, num_entries)) for first in range(0, num_entries, most)]


def entry_chunks(graph: GraphStore, span: slice | None = None) -> Iterator[EntryChunk]:
    """The entries of a range in order, some at a time; of all, where no range is given."""
    whole = slice(0, len(graph.indices)) if span is None else span
    for first in range(whole.start, whole.stop, CHUNK):
        part = slice(first, min(first + CHUNK, whole.stop))
        rows = _rows(graph.indptr, graph.indices, part.start, part.stop)
        yield EntryChunk(part, rows, rows < graph.indices[part], linked_entries(graph, part))


def linked_entries(graph: GraphStore, part: slice) -> Mask | None:
    """Which entries are links of the predicted relation, either way; None where all are."""
    if graph.codes is None or graph.relations is None:
        return None
    found: Mask = np.asarray(graph.codes[part]) & graph.relations.link_mask != 0
    return found


def list_links(graph: GraphStore, chunk: EntryChunk, chosen: Mask) -> tuple[IntArray, IntArray]:
    """The links of some pairs, from source to target; of a pair with both directions, two.

    Args:
        graph: It has the entries.
        chunk: Some of them.
        chosen: [num_entries], some of ``chunk.pairs``.

    Returns:
        The links, [2, num_links], and of each which of the chosen pairs it links.
    """
    ends = np.stack([chunk.rows[chosen], graph.indices[chunk.part][chosen]])
    each, relations = np.arange(ends.shape[1]), graph.relations
    if relations is None:
        return ends, each
    if graph.codes is None or not relations.target.directed:
        backwards = relations.source_nodes.start > relations.target_nodes.start
        return ends[::-1] if backwards else ends, each
    codes = np.asarray(graph.codes[chunk.part])[chosen]
    listed = np.stack([codes & bit != 0 for bit in relations.link_bits], axis=1)
    each, turned = np.nonzero(listed)
    return np.where(turned, ends[::-1, each], ends[:, each]), each


def hashed_chunks(
    graph: GraphStore,
    node_keys: IntArray,
    span: slice | None = None,
    *,
    seed: int,
    purpose: str,
) -> Iterator[tuple[EntryChunk, Words]]:
    """The same with the pair hash of every entry, made of the keys of its two nodes."""
    keys = np.asarray(node_keys).astype(np.uint64, copy=False)
    key = hash_key(seed=seed, purpose=purpose)
    for chunk in entry_chunks(graph, span):
        yield chunk, _hashes(chunk.rows, graph.indices[chunk.part], keys, key)


def find_entries(graph: GraphStore, rows: IntArray, columns: IntArray) -> npt.NDArray[np.int64]:
    """Where the entries (row, column) stand, [num_pairs]; they must be there."""
    return _find_entries(graph.indptr, graph.indices, rows, columns)


@numba.njit(cache=True, nogil=True)
def _rows(indptr: IntArray, indices: IntArray, first: int, last: int) -> IntArray:
    rows = np.empty(last - first, dtype=indices.dtype)
    row = np.searchsorted(indptr, first, side="right") - 1
    for offset in range(last - first):
        while indptr[row + 1] <= first + offset:
            row += 1
        rows[offset] = row
    return rows


@numba.njit(cache=True, nogil=True)
def _hashes(rows: IntArray, columns: IntArray, keys: Words, key: np.uint64) -> Words:
    hashes = np.empty(len(rows), dtype=np.uint64)
    for entry in range(len(rows)):
        hashes[entry] = hash_one(keys[rows[entry]], keys[columns[entry]], key)
    return hashes


@numba.njit(cache=True, nogil=True)
def _find_entries(
    indptr: IntArray, indices: IntArray, rows: IntArray, columns: IntArray
) -> npt.NDArray[np.int64]:
    found = np.empty(len(rows), dtype=np.int64)
    for pair in range(len(rows)):
        found[pair] = entry_index(indptr, indices, rows[pair], columns[pair])
    return found
