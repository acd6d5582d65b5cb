"""What the positions of a pair say: rotation-invariant numbers only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from peg_core.kernels.pair_geometry import NUM_GEOMETRIC, position_geometry

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]


def pair_geometry(positions: Sequence[Array], source: Array, target: Array) -> FloatArray:
    """Inner product, squared distance and cosine for every encoding; no row is gathered.

    Args:
        positions: [num_nodes, dimensions] for every encoding.
        source, target: [num_pairs] nodes.

    Returns:
        [num_pairs, 3 * num_encodings].
    """
    out = np.empty((len(source), NUM_GEOMETRIC * len(positions)), dtype=np.float32)
    for encoding, z in enumerate(positions):
        _fill(np.asarray(z, dtype=np.float32), source, target, out, NUM_GEOMETRIC * encoding)
    return out


@numba.njit(cache=True, nogil=True)
def _fill(z: Array, source: Array, target: Array, out: FloatArray, column: int) -> None:
    for i in range(len(source)):
        position_geometry(z, source[i], target[i], out, i, column)
