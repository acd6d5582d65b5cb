"""Starting vectors from an earlier encoding."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from peg_core.errors import ArtifactMismatch
from peg_core.graph.graph_store import FloatArray, GraphStore

SWEEPS = 3


def start_vectors(
    graph: GraphStore, earlier: FloatArray, known: npt.NDArray[np.bool_] | None = None
) -> npt.NDArray[np.float32]:
    """Eigenvectors of an earlier graph as a start for this one.

    New nodes get the average over their neighbours of ``x / sqrt(degree)``, the
    quantity that is smooth along edges; nodes with no known neighbour wait for the
    next sweep, and stay at 0 if it never reaches them.

    Args:
        graph: The graph to solve.
        earlier: Rows of this graph's nodes, [num_nodes, count]; rows of new nodes
            are ignored.
        known: Which nodes the earlier encoding had, [num_nodes]; None for all.
    """
    if len(earlier) != graph.num_nodes:
        raise ArtifactMismatch.of(
            what="an earlier encoding and the graph",
            found=f"{len(earlier):,} rows",
            needed=f"{graph.num_nodes:,}, one per node",
        )
    vectors = np.array(earlier, dtype=np.float32)
    if known is None or known.all():
        return vectors
    done = known.copy()
    vectors[~done] = 0
    root = np.sqrt(np.maximum(graph.weighted_degrees, 1e-30)).astype(np.float32)[:, None]
    adjacency = graph.adjacency(np.float32)
    for _ in range(SWEEPS):
        waiting = np.flatnonzero(~done)
        rows = adjacency[waiting]
        weight = rows @ done.astype(np.float32)
        reached = weight > 0
        if not reached.any():
            break
        sums = rows[reached] @ (vectors / root)
        nodes = waiting[reached]
        vectors[nodes] = sums / weight[reached, None] * root[nodes]
        done[nodes] = True
    return vectors
