"""What the positions of a pair say: rotation-invariant numbers only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]

NUM_GEOMETRIC = 3


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


@numba.njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def position_geometry(
    z: Array, first: int, second: int, out: FloatArray, row: int, column: int
) -> None:
    """The three numbers of one pair and one encoding, written to ``out[row, column:]``."""
    inner, squared = np.float32(0), np.float32(0)
    length, other = np.float32(0), np.float32(0)
    for k in range(z.shape[1]):
        a, b = z[first, k], z[second, k]
        inner += a * b
        squared += (a - b) * (a - b)
        length += a * a
        other += b * b
    lengths = np.sqrt(length) * np.sqrt(other)
    out[row, column] = inner
    out[row, column + 1] = squared
    out[row, column + 2] = inner / max(lengths, np.float32(1e-12))
