"""Chebyshev-filtered subspace iteration (CheFSI): the form for many machines.

All columns are filtered independently of each other, then rotated by small matrices
summed over rows: both parts can run as tasks, on column blocks and on row chunks.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from peg_core.encoding.row_chunks import gram, rotate, subtract_projection
from peg_core.encoding.spectral.chebyshev_filter import ChebyshevFilter, choose_degree
from peg_core.encoding.spectral.eigenpairs import Eigenpairs, residual_limits
from peg_core.encoding.spectral.normalised_operator import (
    NormalisedOperator,
    rayleigh_quotients,
    sorted_eigenpairs,
)
from peg_core.encoding.spectral.solve_limits import cluster_limits, ends_in_cluster, is_large
from peg_core.graph.graph_store import FloatArray
from peg_core.kernels.sparse_product import BLOCK_WIDTHS

Array = npt.NDArray[np.float64]

WIDTH = BLOCK_WIDTHS[-1]
OVERSAMPLING = 1.25
MOST_ITERATIONS = 60
STALLED_ITERATIONS = 6


def solve_chebyshev(
    operator: NormalisedOperator,
    *,
    wanted: int,
    extra: int,
    tolerance: float,
    budget: int,
    stream: np.random.Generator,
    start: FloatArray | None = None,
) -> Eigenpairs:
    """The smallest non-zero eigenvalues of L; accurate columns are locked.

    Args:
        operator: The normalised adjacency of a connected component.
        wanted: Eigenpairs that must reach the tolerance.
        extra: Further eigenpairs, accurate enough to know their eigenvalues.
        tolerance: Largest ``||L u - lambda u||``.
        budget: Products with the adjacency after which no filter follows.
        stream: Draws the columns that the start does not fill.
        start: [num_nodes, any], or None for a random start.
    """
    count = wanted + extra
    columns = _start_columns(operator, round(OVERSAMPLING * count), stream, start)
    null = operator.null_vector()
    limits = residual_limits(wanted=wanted, extra=extra, tolerance=tolerance)
    locked, best, stalled = 0, np.inf, 0
    for _ in range(MOST_ITERATIONS):
        orthonormalise(columns[:, locked:], null, columns[:, :locked])
        values = rayleigh_ritz(operator, columns[:, locked:])
        found, residuals = rayleigh_quotients(operator, columns[:, locked:count])
        goal = limits[locked:]
        if is_large(operator.num_nodes) and ends_in_cluster(1 - values, len(found), tolerance):
            goal = cluster_limits(goal, found, tolerance)
        good = residuals <= goal
        worst = float((residuals / goal).max())
        locked += len(good) if good.all() else int(np.argmin(good))
        stalled = 0 if worst < 0.9 * best else stalled + 1
        best = min(best, worst)
        spent = operator.applications >= budget
        if locked == count or stalled == STALLED_ITERATIONS or spent:
            break
        precision = float(np.finfo(operator.dtype).eps) / tolerance / 8
        chebyshev = choose_degree(
            lower=-1.0, cut=float(values[-1]), highest=float(values[0]), precision=precision
        )
        filter_columns(operator, chebyshev, columns[:, locked:])
    return sorted_eigenpairs(operator, columns[:, :count], solver="chebyshev")


def filter_columns(
    operator: NormalisedOperator, chebyshev: ChebyshevFilter, columns: FloatArray
) -> None:
    """Filter block by block of columns, in place."""
    for first in range(0, columns.shape[1], WIDTH):
        piece = columns[:, first : first + WIDTH]
        block = np.zeros((operator.num_nodes, WIDTH), dtype=operator.dtype)
        block[:, : piece.shape[1]] = piece
        piece[...] = chebyshev.apply(operator, block, np.empty_like(block))[:, : piece.shape[1]]


def orthonormalise(columns: FloatArray, *others: FloatArray) -> None:
    """Make columns orthonormal, and orthogonal to orthonormal others, in place."""
    for _ in range(3):
        for other in others:
            subtract_projection(other, gram(other, columns), columns)
        square = gram(columns, columns)
        scale = np.sqrt(np.maximum(np.diag(square), np.finfo(np.float64).tiny))
        values, vectors = np.linalg.eigh(square / np.outer(scale, scale))
        floor = float(np.finfo(columns.dtype).eps) * len(values)
        rotate(columns, vectors / scale[:, None] / np.sqrt(np.maximum(values, floor)), columns)
        if values[0] > 0.9:
            break


def rayleigh_ritz(operator: NormalisedOperator, columns: FloatArray) -> Array:
    """Rotate orthonormal columns into Ritz vectors of N, in place; values descending."""
    square = np.empty((columns.shape[1], columns.shape[1]))
    for first in range(0, columns.shape[1], WIDTH):
        image = operator.multiply(columns[:, first : first + WIDTH])
        square[:, first : first + WIDTH] = gram(columns, image)
    values, vectors = np.linalg.eigh((square + square.T) / 2)
    rotate(columns, vectors[:, ::-1], columns)
    return values[::-1]


def _start_columns(
    operator: NormalisedOperator,
    count: int,
    stream: np.random.Generator,
    start: FloatArray | None,
) -> FloatArray:
    count = min(count, operator.num_nodes - 1)
    columns = stream.standard_normal((operator.num_nodes, count), dtype=np.float32)
    columns = columns.astype(operator.dtype, copy=False)
    if start is not None:
        useful = start[:, np.any(start != 0, axis=0)][:, :count]
        columns[:, : useful.shape[1]] = useful
    return columns
