"""The leading singular vectors of a large symmetric sparse matrix.

Halko, Martinsson, Tropp: Finding structure with randomness, 2011. Every round multiplies
twice and takes the Ritz vectors of what it found, the steps that tasks on tiles take
too (:mod:`workers.distributed_encoding.netsmf_tasks`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from peg_core.encoding.row_chunks import chunks, rotate
from peg_core.encoding.spectral.normalised_operator import padded_width
from peg_core.graph.graph_store import FloatArray, IntArray
from peg_core.kernels.sparse_product import BLOCK_WIDTHS, recurrence_step
from peg_core.kernels.thread_spans import map_spans, one_blas_thread, row_spans

OVERSAMPLING = 1.25
ROUNDS = 3
# Directions that hold less than this share of a unit column are float32's rounding errors.
SMALLEST_SHARE = 1e-9
# Smaller matrices are solved as a whole.
LARGEST_DENSE = 512

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SparseMatrix:
    """A symmetric matrix in compressed rows.

    Args:
        indptr: [num_rows + 1].
        indices: [entries].
        values: float32, [entries].
    """

    indptr: IntArray
    indices: IntArray
    values: FloatArray

    @property
    def num_rows(self) -> int:
        return len(self.indptr) - 1

    def multiply_block(self, block: FloatArray, out: FloatArray) -> None:
        """``out = self block`` for a contiguous block of a width that the kernel knows."""
        ones = np.ones(self.num_rows, dtype=block.dtype)
        arrays = (self.indptr, self.indices, self.values, ones)
        recurrence_step(*arrays, block, out, alpha=1.0, beta=0.0, gamma=0.0)

    def multiply(self, columns: FloatArray) -> FloatArray:
        """``self columns``, [num_rows, any]."""
        result = np.empty_like(columns)
        widest = BLOCK_WIDTHS[-1]
        for first in range(0, columns.shape[1], widest):
            own = columns[:, first : first + widest]
            width = own.shape[1]
            block = np.zeros((self.num_rows, padded_width(width)), dtype=columns.dtype)
            block[:, :width] = own
            out = np.zeros_like(block)
            self.multiply_block(block, out)
            result[:, first : first + width] = out[:, :width]
        return result


def num_columns(wanted: int, num_rows: int) -> int:
    """Columns to iterate with for so many wanted ones."""
    return min(round(OVERSAMPLING * wanted) + 8, num_rows)


def largest_values(values: Array, wanted: int) -> npt.NDArray[np.int64]:
    """Which eigenvalues have the largest size, in descending order of it."""
    return np.argsort(-np.abs(values), kind="stable")[:wanted].astype(np.int64)


def find_rotation(overlaps: Array, images: Array) -> tuple[Array, Array]:
    """The rotation that turns columns Y into Ritz vectors of a symmetric M.

    Args:
        overlaps: ``Y^T Y``, summed in float64, [columns, columns].
        images: ``Y^T M Y``, [columns, columns].

    Returns:
        Ritz values, [columns], and R, [columns, columns]: the Ritz vectors are ``Y R``.
        Where the columns depend on each other, values and vectors at the end are 0.
    """
    scale = np.sqrt(np.diag(overlaps))
    inverse = np.divide(1, scale, out=np.zeros_like(scale), where=scale > 0)
    shares, vectors = np.linalg.eigh(_symmetric(overlaps * np.outer(inverse, inverse)))
    kept = shares > SMALLEST_SHARE
    basis = inverse[:, None] * vectors[:, kept] / np.sqrt(shares[kept])
    found, ritz = np.linalg.eigh(_symmetric(basis.T @ images @ basis))
    values, rotation = np.zeros(len(overlaps)), np.zeros_like(overlaps)
    values[: len(found)] = found
    rotation[:, : len(found)] = basis @ ritz
    return values, rotation


def leading_eigenpairs(
    matrix: SparseMatrix, wanted: int, *, stream: np.random.Generator
) -> tuple[Array, FloatArray]:
    """Eigenvalues of the largest size and their vectors.

    Args:
        matrix: Symmetric, float32.
        wanted: At most the number of rows.
        stream: Draws the start.

    Returns:
        Eigenvalues, [wanted], by descending size, and columns, [num_rows, wanted], of
        length 1, or 0 where the matrix has no further eigenvalue. The singular values are
        the sizes.
    """
    if matrix.num_rows <= max(LARGEST_DENSE, 2 * wanted):
        return _dense_eigenpairs(matrix, wanted)
    shape = (matrix.num_rows, num_columns(wanted, matrix.num_rows))
    columns: FloatArray = stream.standard_normal(shape, dtype=np.float32)
    values: Array = np.zeros(shape[1])
    with one_blas_thread():
        for _ in range(ROUNDS):
            columns = matrix.multiply(columns)
            image = matrix.multiply(columns)
            overlaps, images = (_exact_gram(columns, right) for right in (columns, image))
            values, rotation = find_rotation(overlaps, images)
            rotate(columns, rotation, columns)
    chosen = largest_values(values, wanted)
    return values[chosen], columns[:, chosen]


def _dense_eigenpairs(matrix: SparseMatrix, wanted: int) -> tuple[Array, FloatArray]:
    dense = np.zeros((matrix.num_rows, matrix.num_rows))
    rows = np.repeat(np.arange(matrix.num_rows), np.diff(matrix.indptr))
    dense[rows, matrix.indices] = matrix.values
    values, vectors = np.linalg.eigh(dense)
    chosen = largest_values(values, wanted)
    return values[chosen], vectors[:, chosen].astype(np.float32)


def _exact_gram(left: FloatArray, right: FloatArray) -> Array:
    """``left^T right`` in float64: the columns of a product are nearly dependent."""

    def multiply(span: slice) -> Array:
        total = np.zeros((left.shape[1], right.shape[1]))
        for rows in chunks(span):
            total += left[rows].astype(np.float64).T @ right[rows].astype(np.float64)
        return total

    return np.sum(map_spans(multiply, row_spans(len(left))), axis=0)


def _symmetric(matrix: Array) -> Array:
    return (matrix + matrix.T) / 2
