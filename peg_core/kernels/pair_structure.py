"""What the neighbourhoods of one pair have in common, within kernels."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from peg_core.kernels.sorted_rows import is_neighbour, seek

IntArray = npt.NDArray[np.integer[Any]]

NUM_STRUCTURAL = 6


@numba.njit(cache=True, nogil=True)
def pair_structure(
    indptr: IntArray,
    indices: IntArray,
    components: IntArray,
    first: int,
    second: int,
    out: npt.NDArray[np.float32],
    row: int,
    column: int,
) -> None:
    """The six numbers of one pair, written to ``out[row, column:]``."""
    common, adamic_adar, allocation = pair_overlap(indptr, indices, first, second)
    known = is_neighbour(indptr, indices, first, second)
    smaller = indptr[first + 1] - indptr[first] - known
    larger = indptr[second + 1] - indptr[second] - known
    if smaller > larger:
        smaller, larger = larger, smaller
    connected = components[first] == components[second] and not (known and smaller == 0)
    out[row, column] = np.log1p(common)
    out[row, column + 1] = np.log1p(adamic_adar)
    out[row, column + 2] = np.log1p(allocation)
    out[row, column + 3] = np.log1p(float(smaller))
    out[row, column + 4] = np.log1p(float(larger))
    out[row, column + 5] = 1.0 if connected else 0.0


@numba.njit(cache=True, nogil=True)
def pair_overlap(
    indptr: IntArray, indices: IntArray, first: int, second: int
) -> tuple[float, float, float]:
    """Common neighbours, Adamic-Adar and resource allocation of one pair."""
    common, adamic_adar, allocation = 0.0, 0.0, 0.0
    if indptr[first + 1] - indptr[first] > indptr[second + 1] - indptr[second]:
        first, second = second, first
    start, stop = indptr[second], indptr[second + 1]
    for entry in range(indptr[first], indptr[first + 1]):
        node = indices[entry]
        start = seek(indices, start, stop, node)
        if start >= stop:
            break
        if indices[start] == node:
            degree = indptr[node + 1] - indptr[node]
            common += 1.0
            # a common neighbour of two distinct nodes has degree two or more
            adamic_adar += 1.0 / np.log(max(degree, 2))
            allocation += 1.0 / degree
    return common, adamic_adar, allocation
