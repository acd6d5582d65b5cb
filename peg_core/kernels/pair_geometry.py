"""What the positions of one pair say, within kernels."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]

NUM_GEOMETRIC = 3


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
