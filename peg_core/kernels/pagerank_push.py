"""One forward push of personalised PageRank, from a source to all it reaches."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.integer[Any]]
FloatArray = npt.NDArray[np.float64]

RESTART = 0.15
TOLERANCE = 5e-5


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
