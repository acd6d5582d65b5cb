"""Personalised PageRank by forward push (Andersen, Chung, Lang 2006)."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import GraphStore
from peg_core.heuristics.source_groups import SourceGroups

IntArray = npt.NDArray[np.integer[Any]]
FloatArray = npt.NDArray[np.float64]

RESTART = 0.15
TOLERANCE = 5e-5


def pagerank_proximity(
    graph: GraphStore,
    source: IntArray,
    target: IntArray,
    *,
    restart: float = RESTART,
    tolerance: float = TOLERANCE,
) -> FloatArray:
    """PageRank of the target from the source plus that of the source from the target.

    On an undirected graph the second is the first times degree(source) / degree(target),
    so one push per source is enough. The PageRank of a node is at most ``tolerance``
    times its degree too small. Returns [num_pairs].
    """
    groups = SourceGroups.of(source, target)
    one_way = groups.score(
        lambda sources, starts, targets, out: _proximity(
            graph.indptr, graph.indices, sources, starts, targets, restart, tolerance, out
        )
    )
    degrees = graph.degrees.astype(np.float64)
    return one_way * (1 + degrees[source] / np.maximum(degrees[target], 1))


@numba.njit(cache=True, nogil=True)
def _proximity(
    indptr: IntArray,
    indices: IntArray,
    sources: IntArray,
    starts: IntArray,
    targets: IntArray,
    restart: float,
    tolerance: float,
    out: FloatArray,
) -> None:
    num_nodes = len(indptr) - 1
    rank = np.zeros(num_nodes, dtype=np.float64)
    residual = np.zeros(num_nodes, dtype=np.float64)
    queue = np.empty(num_nodes, dtype=np.int64)
    reached = np.empty(num_nodes, dtype=np.int64)
    waiting = np.zeros(num_nodes, dtype=np.bool_)
    for group in range(len(sources)):
        count = push(
            indptr, indices, sources[group], restart, tolerance,
            rank, residual, queue, waiting, reached,
        )  # fmt: skip
        for pair in range(starts[group], starts[group + 1]):
            out[pair] = rank[targets[pair]]
        for place in range(count):
            rank[reached[place]] = 0.0
            residual[reached[place]] = 0.0


@numba.njit(cache=True, nogil=True)
def push(
    indptr: IntArray,
    indices: IntArray,
    source: int,
    restart: float,
    tolerance: float,
    rank: FloatArray,
    residual: FloatArray,
    queue: IntArray,
    waiting: npt.NDArray[np.bool_],
    reached: IntArray,
) -> int:
    """Fill ``rank`` from one source; returns how many nodes stand in ``reached``.

    All arrays are [num_nodes], ``rank``, ``residual`` and ``waiting`` zero on entry; who
    calls again sets ``rank`` and ``residual`` of the reached nodes back to zero. The queue
    is first in, first out, so the result is always the same.
    """
    num_nodes = len(indptr) - 1
    residual[source] = 1.0
    reached[0], queue[0] = source, source
    num_reached, head, length = 1, 0, 1
    while length:
        node = queue[head]
        head = (head + 1) % num_nodes
        length -= 1
        waiting[node] = False
        mass = residual[node]
        residual[node] = 0.0
        degree = indptr[node + 1] - indptr[node]
        if degree == 0:
            rank[node] += mass
            continue
        rank[node] += restart * mass
        share = (1.0 - restart) * mass / degree
        for other in indices[indptr[node] : indptr[node + 1]]:
            if residual[other] == 0.0 and rank[other] == 0.0:
                reached[num_reached] = other
                num_reached += 1
            residual[other] += share
            limit = tolerance * (indptr[other + 1] - indptr[other])
            if not waiting[other] and residual[other] > limit:
                waiting[other] = True
                queue[(head + length) % num_nodes] = other
                length += 1
    return num_reached
