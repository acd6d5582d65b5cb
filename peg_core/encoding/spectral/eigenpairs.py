"""What a solver returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import FloatArray

EXTRA_FACTOR = 10.0


@dataclass(frozen=True)
class Eigenpairs:
    """The smallest non-zero eigenvalues of L on one connected component.

    Args:
        values: Ascending, [count].
        vectors: Orthonormal columns, [num_nodes, count].
        residuals: ``||L u - lambda u||``, computed from the vectors, [count].
        solver: Which solver found them.
        applications: Columns multiplied with the adjacency.
    """

    values: npt.NDArray[np.float64]
    vectors: FloatArray
    residuals: npt.NDArray[np.float64]
    solver: str
    applications: int = 0


def residual_limits(*, wanted: int, extra: int, tolerance: float) -> npt.NDArray[np.float64]:
    """Residuals to reach, [wanted + extra].

    Of the extra pairs only the eigenvalue is used, and its error is the square of
    the residual's size.
    """
    return np.repeat([tolerance, EXTRA_FACTOR * tolerance], [wanted, extra])
