"""Personalised PageRank by forward push (Andersen, Chung, Lang 2006)."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import GraphStore
from peg_core.heuristics.source_groups import SourceGroups
from peg_core.kernels.pagerank_push import RESTART, TOLERANCE, push

IntArray = npt.NDArray[np.integer[Any]]
FloatArray = npt.NDArray[np.float64]


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
        for i in range(count):
            rank[reached[i]] = 0.0
            residual[reached[i]] = 0.0
