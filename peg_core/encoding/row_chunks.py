"""Dense work on tall blocks, chunk of rows by chunk of rows.

Each function handles rows independently or sums small matrices over chunks, so
that tasks on many machines can run the same code on their own rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import FloatArray

CHUNK_ROWS = 4_096

Matrix = npt.NDArray[np.float64]


def chunks(num_rows: int) -> Iterator[slice]:
    """Consecutive ranges of rows."""
    for start in range(0, num_rows, CHUNK_ROWS):
        yield slice(start, min(start + CHUNK_ROWS, num_rows))


def gram(left: FloatArray, right: FloatArray) -> Matrix:
    """``left^T right``, summed over chunks in float64, [left columns, right columns]."""
    if left.shape[1] > right.shape[1]:  # BLAS is faster with the narrow block first
        return gram(right, left).T
    total = np.zeros((left.shape[1], right.shape[1]))
    for rows in chunks(len(left)):
        total += left[rows].T @ right[rows]
    return total


def subtract_projection(basis: FloatArray, coefficients: Matrix, block: FloatArray) -> None:
    """``block -= basis coefficients``, in place."""
    factor = coefficients.astype(block.dtype)
    for rows in chunks(len(block)):
        block[rows] -= basis[rows] @ factor


def rotate(block: FloatArray, rotation: Matrix, out: FloatArray) -> None:
    """``out = block rotation``; ``out`` may be the first columns of ``block``."""
    factor = np.ascontiguousarray(rotation, dtype=block.dtype)
    for rows in chunks(len(block)):
        out[rows] = block[rows] @ factor
