"""What a solver returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import FloatArray


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
