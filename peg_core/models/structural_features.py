"""What the neighbourhoods of a pair have in common."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import GraphStore

IntArray = npt.NDArray[np.integer[Any]]
FloatArray = npt.NDArray[np.float64]

COMMON_NEIGHBORS, ADAMIC_ADAR, RESOURCE_ALLOCATION = 0, 1, 2
NUM_STRUCTURAL = 6


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
    overlap = neighborhood_overlap(graph, source, target)
    known = graph.contains(source, target)
    first = graph.indptr[np.asarray(source) + 1] - graph.indptr[source] - known
    second = graph.indptr[np.asarray(target) + 1] - graph.indptr[target] - known
    degrees = np.stack([np.minimum(first, second), np.maximum(first, second)], axis=1)
    connected = (components[source] == components[target]) & ~(known & (degrees[:, 0] == 0))
    logs = np.log1p(np.concatenate([overlap, degrees], axis=1))
    return np.concatenate([logs, connected[:, None]], axis=1).astype(np.float32)


@numba.njit(cache=True, parallel=True)
def _overlap(indptr: IntArray, indices: IntArray, source: IntArray, target: IntArray) -> FloatArray:
    out = np.zeros((len(source), 3), dtype=np.float64)
    for i in numba.prange(len(source)):
        low, high = source[i], target[i]
        if indptr[low + 1] - indptr[low] > indptr[high + 1] - indptr[high]:
            low, high = high, low
        start, stop = indptr[high], indptr[high + 1]
        for entry in range(indptr[low], indptr[low + 1]):
            node = indices[entry]
            # both rows are sorted: gallop from the last place found
            step = 1
            while start + step < stop and indices[start + step] < node:
                step *= 2
            left, right = start + step // 2, min(start + step + 1, stop)
            while left < right:
                middle = (left + right) // 2
                if indices[middle] < node:
                    left = middle + 1
                else:
                    right = middle
            start = left
            if start >= stop:
                break
            if indices[start] == node:
                degree = indptr[node + 1] - indptr[node]
                out[i, 0] += 1.0
                # a common neighbour of two distinct nodes has degree two or more
                out[i, 1] += 1.0 / np.log(max(degree, 2))
                out[i, 2] += 1.0 / degree
    return out
