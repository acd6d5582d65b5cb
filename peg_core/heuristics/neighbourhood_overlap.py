"""How much the neighbourhoods of pairs have in common."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import GraphStore
from peg_core.kernels.pair_structure import pair_overlap

IntArray = npt.NDArray[np.integer[Any]]
FloatArray = npt.NDArray[np.float64]

COMMON_NEIGHBOURS, ADAMIC_ADAR, RESOURCE_ALLOCATION = 0, 1, 2


def neighbourhood_overlap(graph: GraphStore, source: IntArray, target: IntArray) -> FloatArray:
    """Common neighbours, Adamic-Adar and resource allocation of each pair, [num_pairs, 3]."""
    return _overlap(
        graph.indptr,
        graph.indices,
        np.asarray(source, dtype=np.int64),
        np.asarray(target, dtype=np.int64),
    )


@numba.njit(cache=True, parallel=True)
def _overlap(indptr: IntArray, indices: IntArray, source: IntArray, target: IntArray) -> FloatArray:
    out = np.zeros((len(source), 3), dtype=np.float64)
    for i in numba.prange(len(source)):
        out[i, 0], out[i, 1], out[i, 2] = pair_overlap(indptr, indices, source[i], target[i])
    return out
