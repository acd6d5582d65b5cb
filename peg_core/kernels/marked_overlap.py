"""What the neighbourhoods of many pairs have in common, the pairs of a hub together.

Short rows are searched pair by pair. Where both rows are long, pairs are put in the order of
their larger end: its neighbours are marked in a bitmap once, and the rows of all its partners
are read against it. Common neighbours are added up in the order of the row either way, so a
pair has the same bits whatever stands beside it.
"""

from __future__ import annotations

import functools
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from peg_core.kernels.intrinsics import prefetch_row
from peg_core.kernels.node_rows import frozen_rows
from peg_core.kernels.pair_structure import common_weights, pair_overlap
from peg_core.kernels.sorted_rows import is_neighbour
from peg_core.kernels.thread_spans import map_spans, row_spans

Array = npt.NDArray[Any]
IntArray = npt.NDArray[np.integer[Any]]
FloatArray = npt.NDArray[np.float64]

# Columns of an overlap: three sums over the common neighbours, and whether the two are linked.
COMMON, ADAMIC_ADAR, ALLOCATION, LINKED = 0, 1, 2, 3
NUM_OVERLAPS = 4
# Rows up to this length are searched at once.
SHORT_ROW = 16
# Searching for one neighbour takes as long as marking so many and taking the marks away.
MARKS_PER_SEARCH = 16
# Pairs whose rows are asked for together.
TILE_PAIRS = 256
# Partners whose rows are asked for ahead, and the most entries of each.
PARTNERS_AHEAD = 2
ENTRIES_AHEAD = 1_024
ENTRIES_PER_LINE = 16
# Entries that are compared with the bitmap at once.
ENTRIES_PER_STEP = 4_096
# Degrees whose weights are looked up.
NUM_WEIGHTS = 65_536


def pair_overlaps(
    indptr: IntArray, indices: IntArray, source: IntArray, target: IntArray
) -> FloatArray:
    """Common neighbours, Adamic-Adar, resource allocation, and whether linked: [num_pairs, 4]."""
    indptr, indices = frozen_rows(indptr), frozen_rows(indices)
    out = np.empty((len(source), NUM_OVERLAPS), dtype=np.float64)
    long = np.empty(len(source), dtype=np.int64)
    weights = _weights()

    def search(span: slice) -> Array:
        count = _search_short(
            indptr, indices, weights, source, target, span.start, span.stop, long, out
        )
        return long[span.start : span.start + count]

    pairs = np.concatenate([long[:0], *map_spans(search, row_spans(len(source)))])
    if not len(pairs):
        return out
    hubs, partners = _larger_first(indptr, source[pairs], target[pairs])
    order = np.argsort(hubs)
    hubs, partners, pairs = hubs[order], partners[order], pairs[order]

    def mark(span: slice) -> None:
        _mark_hubs(indptr, indices, weights, hubs[span], partners[span], pairs[span], out)

    map_spans(mark, row_spans(len(pairs)))
    return out


@functools.cache
def _weights() -> FloatArray:
    """What a common neighbour adds, by its degree, [NUM_WEIGHTS, 2]."""
    weights = np.empty((NUM_WEIGHTS, 2), dtype=np.float64)
    _fill_weights(weights)
    weights.flags.writeable = False
    return weights


@numba.njit(cache=True, nogil=True)
def _fill_weights(weights: FloatArray) -> None:
    for degree in range(1, len(weights)):
        weights[degree, 0], weights[degree, 1] = common_weights(degree)
    weights[0] = 0.0  # a common neighbour has two


@numba.njit(cache=True, nogil=True)
def _search_short(
    indptr: IntArray,
    indices: IntArray,
    weights: FloatArray,
    source: IntArray,
    target: IntArray,
    start: int,
    stop: int,
    long: IntArray,
    out: FloatArray,
) -> int:
    """Pairs with a short row; the others are listed in ``long[start:]``, and counted."""
    count = 0
    short = np.empty(TILE_PAIRS, dtype=np.int64)
    for first in range(start, stop, TILE_PAIRS):
        last = min(first + TILE_PAIRS, stop)
        for i in range(first, last):
            prefetch_row(indptr, source[i])
            prefetch_row(indptr, target[i])
        num_short = 0
        for i in range(first, last):
            one, other = source[i], target[i]
            if min(indptr[one + 1] - indptr[one], indptr[other + 1] - indptr[other]) > SHORT_ROW:
                long[start + count] = i
                count += 1
            else:
                prefetch_row(indices, indptr[one])
                prefetch_row(indices, indptr[other])
                short[num_short] = i
                num_short += 1
        for i in short[:num_short]:
            _search(indptr, indices, weights, source[i], target[i], out[i])
    return count


@numba.njit(cache=True, nogil=True)
def _search(
    indptr: IntArray,
    indices: IntArray,
    weights: FloatArray,
    first: int,
    second: int,
    out: FloatArray,
) -> None:
    out[0], out[1], out[2] = pair_overlap(indptr, indices, weights, first, second)
    out[3] = is_neighbour(indptr, indices, first, second)


@numba.njit(cache=True, nogil=True)
def _larger_first(
    indptr: IntArray, source: IntArray, target: IntArray
) -> tuple[IntArray, IntArray]:
    """The end with the longer row, and the other one."""
    hubs, partners = source.copy(), target.copy()
    for i in range(len(source)):
        one, other = source[i], target[i]
        if indptr[one + 1] - indptr[one] < indptr[other + 1] - indptr[other]:
            hubs[i], partners[i] = other, one
    return hubs, partners


@numba.njit(cache=True, nogil=True)
def _mark_hubs(
    indptr: IntArray,
    indices: IntArray,
    weights: FloatArray,
    hubs: IntArray,
    partners: IntArray,
    pairs: IntArray,
    out: FloatArray,
) -> None:
    """Pairs in the order of their hubs, [num_long] each; ``pairs`` are rows of ``out``."""
    marks = np.zeros((len(indptr) + 63) // 64, dtype=np.uint64)
    found = np.empty(ENTRIES_PER_STEP, dtype=indices.dtype)
    start = 0
    while start < len(hubs):
        hub = hubs[start]
        stop, searched = start, 0
        while stop < len(hubs) and hubs[stop] == hub:
            searched += indptr[partners[stop] + 1] - indptr[partners[stop]]
            stop += 1
        row = indices[indptr[hub] : indptr[hub + 1]]
        if searched * MARKS_PER_SEARCH < len(row):
            for i in range(start, stop):
                _search(indptr, indices, weights, hub, partners[i], out[pairs[i]])
        else:
            for node in row:
                marks[np.uint64(node) >> np.uint64(6)] |= _bit(node)
            for i in range(start, stop):
                if i + PARTNERS_AHEAD < len(partners):
                    _prefetch_entries(indptr, indices, partners[i + PARTNERS_AHEAD])
                _compare(indptr, indices, weights, marks, partners[i], found, out[pairs[i]])
            for node in row:
                marks[np.uint64(node) >> np.uint64(6)] = 0
        start = stop


@numba.njit(cache=True, nogil=True)
def _compare(
    indptr: IntArray,
    indices: IntArray,
    weights: FloatArray,
    marks: Array,
    partner: int,
    found: Array,
    out: FloatArray,
) -> None:
    """The overlap of a node and a hub whose neighbours are marked."""
    common, adamic_adar, allocation = 0, 0.0, 0.0
    for start in range(indptr[partner], indptr[partner + 1], ENTRIES_PER_STEP):
        stop = min(start + ENTRIES_PER_STEP, indptr[partner + 1])
        count = 0
        for entry in range(start, stop):  # nothing to guess: the next one overwrites a miss
            node = indices[entry]
            found[count] = node
            count += int(_is_marked(marks, node))
        for i in range(count):  # the sums below wait for one another, these do not
            prefetch_row(indptr, found[i])
        for i in range(count):
            node = found[i]
            degree = indptr[node + 1] - indptr[node]
            if degree < len(weights):
                adamic_adar += weights[degree, 0]
                allocation += weights[degree, 1]
            else:
                of_common = common_weights(degree)
                adamic_adar += of_common[0]
                allocation += of_common[1]
        common += count
    out[0], out[1], out[2] = float(common), adamic_adar, allocation
    out[3] = float(_is_marked(marks, partner))


@numba.njit(cache=True, nogil=True, inline="always")
def _bit(node: int) -> Any:
    return np.uint64(1) << (np.uint64(node) & np.uint64(63))


@numba.njit(cache=True, nogil=True, inline="always")
def _is_marked(marks: Array, node: int) -> Any:
    word = marks[np.uint64(node) >> np.uint64(6)]
    return (word >> (np.uint64(node) & np.uint64(63))) & np.uint64(1)


@numba.njit(cache=True, nogil=True)
def _prefetch_entries(indptr: IntArray, indices: IntArray, node: int) -> None:
    """Ask for the first entries of a row."""
    start = indptr[node]
    for entry in range(start, min(start + ENTRIES_AHEAD, indptr[node + 1]), ENTRIES_PER_LINE):
        prefetch_row(indices, entry)
