"""When a solve ends: budgets, and clusters of eigenvalues that p lies in.

Graphs of up to ``LARGE_NODES`` nodes are solved as they always were, bit for bit.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

LARGE_NODES = 50_000
# Products per eigenpair; solves that converge were seen to take 40 to 200.
PRODUCTS_PER_PAIR = 400
# Not reached by any graph known: today's results stay as they are.
PRODUCTS_PER_PAIR_SMALL = 4_000
# In tolerances: how close eigenvalues of one cluster lie, and the residual accepted there.
CLUSTER_WIDTH = 10.0
CLUSTER_RESIDUAL = 5.0


def is_large(num_nodes: int) -> bool:
    """Whether a component has more nodes than those that keep their results."""
    return num_nodes > LARGE_NODES


def application_budget(num_nodes: int, count: int) -> int:
    """Columns that a solve may multiply with the adjacency, about.

    Args:
        num_nodes: Of the component.
        count: Eigenpairs to find.
    """
    return count * (PRODUCTS_PER_PAIR if is_large(num_nodes) else PRODUCTS_PER_PAIR_SMALL)


def in_last_cluster(values: Array, tolerance: float) -> npt.NDArray[np.bool_]:
    """Which eigenvalues lie as close to the largest one as those of a cluster, [count]."""
    near: npt.NDArray[np.bool_] = np.abs(values.max() - values) <= CLUSTER_WIDTH * tolerance
    return near


def ends_in_cluster(values: Array, count: int, tolerance: float) -> bool:
    """Whether all columns beyond the first ``count`` belong to the cluster that ends there.

    Args:
        values: Ritz values of L, ascending, [columns], those of a subspace with columns to spare.
        count: Eigenpairs to find.
        tolerance: Of the wanted eigenpairs.
    """
    spread = values[-1] - values[count - 1]
    return len(values) > count and bool(spread <= CLUSTER_WIDTH * tolerance)


def cluster_limits(limits: Array, values: Array, tolerance: float) -> Array:
    """Residuals to reach where p lies inside a cluster.

    Whichever vectors of the cluster are kept is a matter of chance, and a residual of half
    its width only mixes them; one of parts outside is smaller by their distance.

    Args:
        limits: Where there is no cluster, [count].
        values: Eigenvalues of L, [count].
        tolerance: Of the wanted eigenpairs.
    """
    wider = np.maximum(limits, CLUSTER_RESIDUAL * tolerance)
    return np.where(in_last_cluster(values, tolerance), wider, limits)
