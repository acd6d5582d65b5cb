"""Searching the sorted rows of a graph, within kernels."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.integer[Any]]

# Neighbours that are compared at once.
BLOCK = 8


@numba.njit(cache=True, nogil=True)
def entry_index(indptr: IntArray, indices: IntArray, row: int, column: int) -> int:
    """Where the entry (row, column) stands, or would stand if the row had it."""
    low, high = indptr[row], indptr[row + 1]
    while low < high:
        middle = (low + high) // 2
        if indices[middle] < column:
            low = middle + 1
        else:
            high = middle
    return low


@numba.njit(cache=True, nogil=True)
def seek(indices: IntArray, start: int, stop: int, node: int) -> int:
    """The first place in the sorted ``indices[start:stop]`` that holds ``node`` or more, or stop.

    Made for going on from the last match: blocks that lie below the node are skipped, twice as
    many each time.
    """
    step = BLOCK
    while start + step <= stop and indices[start + step - 1] < node:
        start += step
        step *= 2
    while step > BLOCK:
        step //= 2
        if start + step <= stop and indices[start + step - 1] < node:
            start += step
    if start + BLOCK <= stop:
        below = 0
        for offset in range(BLOCK):  # one comparison of vectors, nothing to guess
            below += indices[start + offset] < node
        return start + below
    while start < stop and indices[start] < node:
        start += 1
    return start


@numba.njit(cache=True, nogil=True)
def is_neighbour(indptr: IntArray, indices: IntArray, first: int, second: int) -> bool:
    """Whether two nodes share an edge; the shorter row is searched."""
    if indptr[first + 1] - indptr[first] > indptr[second + 1] - indptr[second]:
        first, second = second, first
    entry = entry_index(indptr, indices, first, second)
    return entry < indptr[first + 1] and indices[entry] == second


@numba.njit(cache=True, parallel=True)
def contains(
    indptr: IntArray, indices: IntArray, source: IntArray, target: IntArray
) -> npt.NDArray[np.bool_]:
    """Which of the pairs are entries, [num_pairs]."""
    found = np.zeros(len(source), dtype=np.bool_)
    for i in numba.prange(len(source)):
        entry = entry_index(indptr, indices, source[i], target[i])
        found[i] = entry < indptr[source[i] + 1] and indices[entry] == target[i]
    return found


@numba.njit(cache=True, nogil=True)
def count_bits(codes: IntArray, bits: int) -> int:
    """How many codes have one of some bits."""
    count = 0
    for entry in range(len(codes)):
        count += codes[entry] & bits != 0
    return count


@numba.njit(cache=True, parallel=True)
def contains_bit(
    indptr: IntArray,
    indices: IntArray,
    codes: IntArray,
    bit: int,
    source: IntArray,
    target: IntArray,
) -> npt.NDArray[np.bool_]:
    """Which of the pairs are entries whose code has a bit, [num_pairs]."""
    found = np.zeros(len(source), dtype=np.bool_)
    for i in numba.prange(len(source)):
        entry = entry_index(indptr, indices, source[i], target[i])
        if entry < indptr[source[i] + 1] and indices[entry] == target[i]:
            found[i] = codes[entry] & bit != 0
    return found
