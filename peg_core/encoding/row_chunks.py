"""Dense work on tall blocks, chunk of rows by chunk of rows.

Each function handles rows independently or sums small matrices over chunks, so
that tasks on many machines can run the same code on their own rows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import FloatArray
from peg_core.kernels.thread_spans import map_spans, row_spans

CHUNK_ROWS = 4_096

Matrix = npt.NDArray[np.float64]


def chunks(span: slice) -> Iterator[slice]:
    """Consecutive ranges of rows that fit into the cache."""
    for start in range(span.start, span.stop, CHUNK_ROWS):
        yield slice(start, min(start + CHUNK_ROWS, span.stop))


def gram(left: FloatArray, right: FloatArray) -> Matrix:
    """``left^T right``, summed over chunks in float64, [left columns, right columns]."""
    if left.shape[1] > right.shape[1]:  # BLAS is faster with the narrow block first
        return gram(right, left).T

    def multiply(span: slice) -> Matrix:
        total = np.zeros((left.shape[1], right.shape[1]))
        for rows in chunks(span):
            total += left[rows].T @ right[rows]
        return total

    return np.sum(map_spans(multiply, row_spans(len(left))), axis=0)


def subtract_projection(basis: FloatArray, coefficients: Matrix, block: FloatArray) -> None:
    """``block -= basis coefficients``, in place."""
    factor = coefficients.astype(block.dtype)

    def subtract(span: slice) -> None:
        for rows in chunks(span):
            block[rows] -= basis[rows] @ factor

    map_spans(subtract, row_spans(len(block)))


def rotate(block: FloatArray, rotation: Matrix, out: FloatArray) -> None:
    """``out = block rotation``; ``out`` may be the first columns of ``block``."""
    factor = np.ascontiguousarray(rotation, dtype=block.dtype)

    def turn(span: slice) -> None:
        for rows in chunks(span):
            out[rows] = block[rows] @ factor

    map_spans(turn, row_spans(len(block)))


def scale_rows(block: FloatArray, factors: FloatArray, out: FloatArray) -> None:
    """``out = diag(factors) block``; ``factors`` is [num_rows, 1]."""

    def scale(span: slice) -> None:
        for rows in chunks(span):
            np.multiply(block[rows], factors[rows], out=out[rows])

    map_spans(scale, row_spans(len(block)))


def column_products(left: FloatArray, right: FloatArray) -> Matrix:
    """Inner products of columns with columns of the same number, [columns]."""

    def multiply(span: slice) -> Matrix:
        total = np.zeros(left.shape[1])
        for rows in chunks(span):
            total += np.einsum("ij,ij->j", left[rows], right[rows])
        return total

    return np.sum(map_spans(multiply, row_spans(len(left))), axis=0)


def subtract_scaled(block: FloatArray, factors: Matrix, out: FloatArray) -> None:
    """``out -= block diag(factors)``, in place."""
    factor = factors.astype(block.dtype)

    def subtract(span: slice) -> None:
        for rows in chunks(span):
            out[rows] -= block[rows] * factor

    map_spans(subtract, row_spans(len(block)))
