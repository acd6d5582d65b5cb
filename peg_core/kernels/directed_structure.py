"""What direction says of one pair, within kernels."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from peg_core.kernels.sorted_rows import entry_index, seek

IntArray = npt.NDArray[np.integer[Any]]

NUM_DIRECTED = 9


@numba.njit(cache=True, nogil=True)
def directed_structure(
    rows: tuple[IntArray, IntArray, IntArray],
    bits: tuple[int, int],
    degrees: IntArray,
    first: int,
    second: int,
    out: npt.NDArray[np.float32],
    row: int,
    column: int,
) -> None:
    """The nine numbers of the pair first -> second, written to ``out[row, column:]``.

    The link first -> second itself, where it is known, counts in none of them.

    Args:
        rows: indptr, indices and codes.
        bits: Of the codes: the link leads from row to column, or from column to row.
        degrees: Links from and to every node, [2, num_nodes].
    """
    own = _code(rows, first, second)
    known = 1 if own & bits[0] else 0
    out[row, column] = np.log1p(float(degrees[0, first] - known))
    out[row, column + 1] = np.log1p(float(degrees[1, first]))
    out[row, column + 2] = np.log1p(float(degrees[0, second]))
    out[row, column + 3] = np.log1p(float(degrees[1, second] - known))
    along, against, successors, predecessors = _overlaps(rows, bits, first, second)
    out[row, column + 4] = np.log1p(float(along))
    out[row, column + 5] = np.log1p(float(against))
    out[row, column + 6] = np.log1p(float(successors))
    out[row, column + 7] = np.log1p(float(predecessors))
    out[row, column + 8] = 1.0 if own & bits[1] else 0.0


@numba.njit(cache=True, nogil=True)
def directed_degrees(indptr: IntArray, codes: IntArray, bits: tuple[int, int]) -> IntArray:
    """Links from and to every node, [2, num_nodes]."""
    out = np.zeros((2, len(indptr) - 1), dtype=np.int32)
    for node in range(len(indptr) - 1):
        for entry in range(indptr[node], indptr[node + 1]):
            out[0, node] += 1 if codes[entry] & bits[0] else 0
            out[1, node] += 1 if codes[entry] & bits[1] else 0
    return out


@numba.njit(cache=True, nogil=True)
def _code(rows: tuple[IntArray, IntArray, IntArray], first: int, second: int) -> int:
    """The code of an entry; 0 where there is none."""
    indptr, indices, codes = rows
    entry = entry_index(indptr, indices, first, second)
    found = entry < indptr[first + 1] and indices[entry] == second
    return int(codes[entry]) if found else 0


@numba.njit(cache=True, nogil=True)
def _overlaps(
    rows: tuple[IntArray, IntArray, IntArray], bits: tuple[int, int], first: int, second: int
) -> tuple[int, int, int, int]:
    """Nodes w with first -> w -> second, second -> w -> first, both -> w, w -> both."""
    indptr, indices, codes = rows
    forward, backward = bits
    along = against = successors = predecessors = 0
    turned = indptr[first + 1] - indptr[first] > indptr[second + 1] - indptr[second]
    if turned:
        first, second = second, first
    start, stop = indptr[second], indptr[second + 1]
    for entry in range(indptr[first], indptr[first + 1]):
        start = seek(indices, start, stop, indices[entry])
        if start >= stop:
            break
        if indices[start] == indices[entry]:
            one, other = codes[entry], codes[start]
            along += 1 if one & forward and other & backward else 0
            against += 1 if one & backward and other & forward else 0
            successors += 1 if one & forward and other & forward else 0
            predecessors += 1 if one & backward and other & backward else 0
    if turned:
        along, against = against, along
    return along, against, successors, predecessors
