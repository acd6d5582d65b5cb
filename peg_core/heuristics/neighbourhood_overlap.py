"""How much the neighbourhoods of pairs have in common."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import GraphStore
from peg_core.kernels.marked_overlap import LINKED, pair_overlaps

IntArray = npt.NDArray[np.integer[Any]]
FloatArray = npt.NDArray[np.float64]

COMMON_NEIGHBOURS, ADAMIC_ADAR, RESOURCE_ALLOCATION = 0, 1, 2


def neighbourhood_overlap(graph: GraphStore, source: IntArray, target: IntArray) -> FloatArray:
    """Common neighbours, Adamic-Adar and resource allocation of each pair, [num_pairs, 3]."""
    ends = (np.asarray(end, dtype=np.int64) for end in (source, target))
    return pair_overlaps(graph.indptr, graph.indices, *ends)[:, :LINKED]
