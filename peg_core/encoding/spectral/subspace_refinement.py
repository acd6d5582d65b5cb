"""Eigenvectors of a graph from those of a similar one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.encoding.row_chunks import column_products, gram, rotate, subtract_scaled
from peg_core.encoding.spectral.chebyshev_filter import DEGREES, ChebyshevFilter
from peg_core.encoding.spectral.chebyshev_subspace import WIDTH, filter_columns, orthonormalise
from peg_core.encoding.spectral.density_of_states import estimate_density
from peg_core.encoding.spectral.eigenpairs import Eigenpairs
from peg_core.encoding.spectral.normalised_operator import NormalisedOperator
from peg_core.graph.graph_store import FloatArray

Array = npt.NDArray[np.float64]

# Steps of the search for the largest eigenvalue that the start does not hold.
EDGE_STEPS = 16
MOST_PASSES = 4
# A pass that gains less than this tells that the spectrum has no gap where it is needed.
LEAST_GAIN = 3.0
SAFETY = 3.0
REFINED = "refined start"


def refine_subspace(
    operator: NormalisedOperator,
    *,
    wanted: int,
    tolerance: float,
    stream: np.random.Generator,
    start: FloatArray,
) -> Eigenpairs | None:
    """Filter a given subspace until it is accurate, where that is cheap.

    It is cheap where eigenvalue number ``wanted`` is followed by a gap: one pass of a
    filter whose cut lies at the next eigenvalue then suffices.

    Args:
        operator: The normalised adjacency of a connected component.
        wanted: Eigenpairs.
        tolerance: Largest ``||L u - lambda u||``.
        stream: Draws the probes that find the next eigenvalue.
        start: Vectors near the wanted ones, [num_nodes, at least wanted].

    Returns:
        The eigenpairs, or None where another solver is the better choice.
    """
    useful = np.flatnonzero(np.any(start != 0, axis=0))
    if len(useful) < wanted:
        return None
    columns = start[:, useful[:wanted]].astype(operator.dtype)
    orthonormalise(columns, operator.null_vector())
    values, residuals = rotate_to_ritz_vectors(operator, columns)
    if residuals.max() > tolerance:
        edge = estimate_density(operator, stream, steps=EDGE_STEPS, deflated=columns).highest
        values, residuals = _filter_until_accurate(
            operator, columns, edge, values, residuals, tolerance
        )
    if residuals.max() > tolerance:
        return None
    return Eigenpairs(1 - values, columns, residuals, REFINED, operator.applications)


def _filter_until_accurate(
    operator: NormalisedOperator,
    columns: FloatArray,
    edge: float,
    values: Array,
    residuals: Array,
    tolerance: float,
) -> tuple[Array, Array]:
    """Filter in place while that pays; the last Ritz values and residuals."""
    for _ in range(MOST_PASSES):
        before = float(residuals.max())
        chebyshev = _filter_for(edge, values, before, tolerance, operator.dtype)
        if chebyshev is None:
            break
        filter_columns(operator, chebyshev, columns)
        orthonormalise(columns, operator.null_vector())
        values, residuals = rotate_to_ritz_vectors(operator, columns)
        if residuals.max() <= tolerance or residuals.max() * LEAST_GAIN > before:
            break
    return values, residuals


def rotate_to_ritz_vectors(
    operator: NormalisedOperator, columns: FloatArray
) -> tuple[Array, Array]:
    """Turn orthonormal columns into Ritz vectors of N, in place.

    Returns:
        Ritz values, descending, and true residual norms, [count] each.
    """
    image = np.empty_like(columns)
    for first in range(0, columns.shape[1], WIDTH):
        image[:, first : first + WIDTH] = operator.multiply(columns[:, first : first + WIDTH])
    square = gram(columns, image)
    values, vectors = np.linalg.eigh((square + square.T) / 2)
    values, vectors = values[::-1].copy(), vectors[:, ::-1]
    rotate(columns, vectors, columns)
    rotate(image, vectors, image)
    subtract_scaled(columns, values, image)
    return values, np.sqrt(column_products(image, image))


def _filter_for(
    edge: float, values: Array, residual: float, tolerance: float, kind: np.dtype[Any]
) -> ChebyshevFilter | None:
    """The cheapest filter that makes the last wanted vector accurate in one pass.

    None where the last wanted eigenvalue does not stand out from the rest.
    """
    lowest, highest = float(values[-1]), float(values[0])
    cut = min(edge, lowest - 1e-6)
    goal = SAFETY * residual / tolerance
    limit = 8 * tolerance / float(np.finfo(kind).eps)
    chosen = None
    for degree in reversed(DEGREES):
        tried = ChebyshevFilter(-1.0, cut, degree)
        gain = float(tried.values(lowest))
        if float(tried.values(highest)) > limit * gain:
            break
        chosen = tried
        if gain >= goal:
            break
    if chosen is None or float(chosen.values(lowest)) < LEAST_GAIN:
        return None
    return chosen
