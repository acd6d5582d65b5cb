"""What the neighbourhoods of a pair have in common."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import GraphStore, entry_place

IntArray = npt.NDArray[np.integer[Any]]
FloatArray = npt.NDArray[np.float64]

COMMON_NEIGHBORS, ADAMIC_ADAR, RESOURCE_ALLOCATION = 0, 1, 2
NUM_STRUCTURAL = 6
# Neighbours that are compared at once.
BLOCK = 8


def neighborhood_overlap(graph: GraphStore, source: IntArray, target: IntArray) -> FloatArray:
    """Common neighbours, Adamic-Adar and resource allocation of each pair, [num_pairs, 3]."""
    return _overlap(
        graph.indptr,
        graph.indices,
        np.asarray(source, dtype=np.int64),
        np.asarray(target, dtype=np.int64),
    )


def structural_features(
    graph: GraphStore, source: IntArray, target: IntArray, components: IntArray
) -> npt.NDArray[np.float32]:
    """log(1 + overlap), log(1 + degree) with the smaller first, same component: [num_pairs, 6].

    A pair that is itself an edge does not count in its own degrees, nor does it
    connect a node that has no other edge: what the head learns from a known link
    must look like a link that is not yet known.

    Args:
        graph: The edges that may be seen.
        source: [num_pairs].
        target: [num_pairs].
        components: The component of every node, [num_nodes].
    """
    out = np.empty((len(source), NUM_STRUCTURAL), dtype=np.float32)
    _structure(
        graph.indptr,
        graph.indices,
        components,
        np.asarray(source, dtype=np.int64),
        np.asarray(target, dtype=np.int64),
        out,
    )
    return out


@numba.njit(cache=True, parallel=True)
def _structure(
    indptr: IntArray,
    indices: IntArray,
    components: IntArray,
    source: IntArray,
    target: IntArray,
    out: npt.NDArray[np.float32],
) -> None:
    for i in numba.prange(len(source)):
        pair_structure(indptr, indices, components, source[i], target[i], out, i, 0)


@numba.njit(cache=True, parallel=True)
def _overlap(indptr: IntArray, indices: IntArray, source: IntArray, target: IntArray) -> FloatArray:
    out = np.zeros((len(source), 3), dtype=np.float64)
    for i in numba.prange(len(source)):
        out[i, 0], out[i, 1], out[i, 2] = pair_overlap(indptr, indices, source[i], target[i])
    return out


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
    known = is_neighbor(indptr, indices, first, second)
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
def is_neighbor(indptr: IntArray, indices: IntArray, first: int, second: int) -> bool:
    """Whether two nodes share an edge; the shorter row is searched."""
    if indptr[first + 1] - indptr[first] > indptr[second + 1] - indptr[second]:
        first, second = second, first
    place = entry_place(indptr, indices, first, second)
    return place < indptr[first + 1] and indices[place] == second


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
        # both rows are sorted: from the last place found, skip blocks that lie below the node
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
            for place in range(BLOCK):  # one comparison of vectors, nothing to guess
                below += indices[start + place] < node
            start += below
        else:
            while start < stop and indices[start] < node:
                start += 1
            if start >= stop:
                break
        if indices[start] == node:
            degree = indptr[node + 1] - indptr[node]
            common += 1.0
            # a common neighbour of two distinct nodes has degree two or more
            adamic_adar += 1.0 / np.log(max(degree, 2))
            allocation += 1.0 / degree
    return common, adamic_adar, allocation
