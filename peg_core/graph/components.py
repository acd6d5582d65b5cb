"""Connected components, by union-find over the memory-mapped rows."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import GraphStore, index_dtype

Array = npt.NDArray[Any]


def connected_components(graph: GraphStore) -> tuple[int, npt.NDArray[np.int32]]:
    """Number of components, and the component of every node, [num_nodes].

    Components are numbered by their first node. Reads the rows once and needs two
    arrays of the size of the nodes, whatever the number of edges.
    """
    roots = np.arange(graph.num_nodes, dtype=index_dtype(graph.num_nodes))
    _unite(graph.indptr, graph.indices, roots)
    labels = np.empty(graph.num_nodes, dtype=np.int32)
    return int(_number(roots, labels)), labels


@numba.njit(cache=True)
def _unite(indptr: Array, indices: Array, roots: Array) -> None:
    """Point every node at a node of its component that is not larger; paths are halved."""
    for row in range(len(indptr) - 1):
        for entry in range(indptr[row], indptr[row + 1]):
            other = indices[entry]
            if other >= row:
                break  # rows are sorted: the rest are the mirror images of other rows
            first, second = row, other
            while roots[first] != first:
                roots[first] = roots[roots[first]]
                first = roots[first]
            while roots[second] != second:
                roots[second] = roots[roots[second]]
                second = roots[second]
            if first < second:
                roots[second] = first
            else:
                roots[first] = second


@numba.njit(cache=True)
def _number(roots: Array, labels: Array) -> int:
    """Roots are never larger than their nodes, so one pass in order numbers all."""
    count = 0
    for node in range(len(roots)):
        if roots[node] == node:
            labels[node] = count
            count += 1
        else:
            labels[node] = labels[roots[node]]
    return count
