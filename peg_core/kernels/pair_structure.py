"""What the neighbourhoods of one pair have in common, within kernels."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from peg_core.kernels.sorted_rows import seek

IntArray = npt.NDArray[np.integer[Any]]
FloatArray = npt.NDArray[np.float64]

NUM_STRUCTURAL = 6


@numba.njit(cache=True, nogil=True)
def pair_structure(
    indptr: IntArray,
    components: IntArray,
    overlap: FloatArray,
    first: int,
    second: int,
    out: npt.NDArray[np.float32],
) -> None:
    """The six numbers of one pair.

    Args:
        overlap: Common neighbours, Adamic-Adar, resource allocation, and whether linked, [4].
        out: [6] or more.
    """
    known = int(overlap[3])
    smaller = indptr[first + 1] - indptr[first] - known
    larger = indptr[second + 1] - indptr[second] - known
    if smaller > larger:
        smaller, larger = larger, smaller
    connected = components[first] == components[second] and not (known and smaller == 0)
    for number in range(3):
        out[number] = np.log1p(overlap[number])
    out[3] = np.log1p(float(smaller))
    out[4] = np.log1p(float(larger))
    out[5] = 1.0 if connected else 0.0


@numba.njit(cache=True, nogil=True)
def pair_overlap(
    indptr: IntArray, indices: IntArray, weights: FloatArray, first: int, second: int
) -> tuple[float, float, float]:
    """Common neighbours, Adamic-Adar and resource allocation of one pair.

    Args:
        weights: What :func:`common_weights` gives for small degrees, [num_weights, 2].
    """
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
            if degree < len(weights):
                adamic_adar += weights[degree, 0]
                allocation += weights[degree, 1]
            else:
                of_common = common_weights(degree)
                adamic_adar += of_common[0]
                allocation += of_common[1]
    return common, adamic_adar, allocation


@numba.njit(cache=True, nogil=True)
def common_weights(degree: int) -> tuple[float, float]:
    """What a common neighbour adds to Adamic-Adar and to resource allocation."""
    # a common neighbour of two distinct nodes has degree two or more
    return 1.0 / np.log(max(degree, 2)), 1.0 / degree
