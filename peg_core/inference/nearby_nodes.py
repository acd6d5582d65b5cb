"""Nodes two steps away, the most promising ones, at a bounded cost."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import GraphStore

IntArray = npt.NDArray[np.integer[Any]]
FloatArray = npt.NDArray[np.float64]

NO_NODE = -1
# Of a longer row this many neighbours are looked at, evenly spread: a hub costs no more.
ROW_LIMIT = 1_000


def nearby_nodes(
    graph: GraphStore, known: GraphStore, nodes: IntArray, *, count: int
) -> npt.NDArray[np.int64]:
    """Nodes that share a neighbour, by resource allocation, [num_nodes, count].

    Ties go to the smaller index; rows end with ``NO_NODE``.

    Args:
        graph: The edges that are walked.
        known: Its neighbours are left out.
        nodes: Where to start.
        count: Nodes wanted at most.
    """
    out = np.full((len(nodes), count), NO_NODE, dtype=np.int64)
    _nearby(
        graph.indptr,
        graph.indices,
        known.indptr,
        known.indices,
        np.asarray(nodes, dtype=np.int64),
        ROW_LIMIT,
        out,
    )
    return out


@numba.njit(cache=True, nogil=True)
def _nearby(
    indptr: IntArray,
    indices: IntArray,
    known_indptr: IntArray,
    known_indices: IntArray,
    nodes: IntArray,
    row_limit: int,
    out: IntArray,
) -> None:
    num_nodes = len(indptr) - 1
    weight = np.zeros(num_nodes, dtype=np.float64)
    blocked = np.zeros(num_nodes, dtype=np.bool_)
    reached = np.empty(num_nodes, dtype=np.int64)
    for place in range(len(nodes)):
        node = nodes[place]
        taken = known_indices[known_indptr[node] : known_indptr[node + 1]]
        blocked[node] = True
        blocked[taken] = True
        count = 0
        start, degree = indptr[node], indptr[node + 1] - indptr[node]
        for step in range(min(degree, row_limit)):
            middle = indices[start + step * degree // min(degree, row_limit)]
            first, others = indptr[middle], indptr[middle + 1] - indptr[middle]
            for other in range(min(others, row_limit)):
                found = indices[first + other * others // min(others, row_limit)]
                if blocked[found]:
                    continue
                if weight[found] == 0.0:
                    reached[count] = found
                    count += 1
                weight[found] += 1.0 / others
        ordered = np.sort(reached[:count])
        best = np.argsort(-weight[ordered], kind="mergesort")[: out.shape[1]]
        out[place, : len(best)] = ordered[best]
        weight[ordered] = 0.0
        blocked[node] = False
        blocked[taken] = False
