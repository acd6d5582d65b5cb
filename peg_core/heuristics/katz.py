"""The Katz index, cut off after walks of length four."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import GraphStore
from peg_core.heuristics.source_groups import SourceGroups

IntArray = npt.NDArray[np.integer[Any]]
FloatArray = npt.NDArray[np.float64]

DAMPING = 0.005


def katz_index(
    graph: GraphStore, source: IntArray, target: IntArray, *, damping: float = DAMPING
) -> FloatArray:
    """Sum over l = 1 .. 4 of damping^l times the walks of length l, [num_pairs].

    Walks meet in the middle: two steps from the source are counted once for all its
    targets, at most two more from each target.
    """
    return SourceGroups.of(source, target).score(
        lambda sources, starts, targets, out: _katz(
            graph.indptr, graph.indices, sources, starts, targets, damping, out
        )
    )


@numba.njit(cache=True, nogil=True)
def _katz(
    indptr: IntArray,
    indices: IntArray,
    sources: IntArray,
    starts: IntArray,
    targets: IntArray,
    damping: float,
    out: FloatArray,
) -> None:
    num_nodes = len(indptr) - 1
    adjacent = np.zeros(num_nodes, dtype=np.bool_)
    walks = np.zeros(num_nodes, dtype=np.float64)  # of length 2 from the source
    for group in range(len(sources)):
        source = sources[group]
        near = indices[indptr[source] : indptr[source + 1]]
        for middle in near:
            adjacent[middle] = True
            for node in indices[indptr[middle] : indptr[middle + 1]]:
                walks[node] += 1.0
        for pair in range(starts[group], starts[group + 1]):
            target = targets[pair]
            three = 0.0
            four = 0.0
            for node in indices[indptr[target] : indptr[target + 1]]:
                three += walks[node]
                for other in indices[indptr[node] : indptr[node + 1]]:
                    four += walks[other]
            out[pair] = damping * (
                adjacent[target] + damping * (walks[target] + damping * (three + damping * four))
            )
        for middle in near:
            adjacent[middle] = False
            for node in indices[indptr[middle] : indptr[middle + 1]]:
                walks[node] = 0.0
