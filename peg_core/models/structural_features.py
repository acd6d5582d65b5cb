"""What the neighbourhoods of a pair have in common."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import GraphStore
from peg_core.kernels.pair_structure import NUM_STRUCTURAL, pair_structure

IntArray = npt.NDArray[np.integer[Any]]


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
