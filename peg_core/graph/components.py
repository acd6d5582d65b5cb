"""Connected components."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse.csgraph

from peg_core.graph.graph_store import GraphStore


def connected_components(graph: GraphStore) -> tuple[int, npt.NDArray[np.int32]]:
    """Number of components, and the component of every node, [num_nodes]."""
    count, labels = scipy.sparse.csgraph.connected_components(
        graph.adjacency(np.float32), directed=False
    )
    return int(count), labels.astype(np.int32)
