"""Where the eigenvalues lie, estimated from a few random vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.linalg

from peg_core.encoding.normalised_operator import NormalisedOperator
from peg_core.encoding.row_chunks import (
    column_products,
    gram,
    subtract_projection,
    subtract_scaled,
)

PROBES = 8
STEPS = 40
EXHAUSTED = 1e-5

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class DensityOfStates:
    """Estimated number of eigenvalues of N above a value.

    Args:
        nodes: Ritz values of each probe, descending, [probes, steps].
        counts: Eigenvalues at or above each node, [probes, steps].
    """

    nodes: Array
    counts: Array

    @property
    def lowest(self) -> float:
        """The smallest Ritz value seen: the spectrum ends a little below it."""
        return float(self.nodes.min())

    @property
    def highest(self) -> float:
        """The largest Ritz value seen: the spectrum without the null vector ends near it."""
        return float(self.nodes.max())

    def value_at(self, number: float) -> float:
        """The eigenvalue with about ``number`` eigenvalues above it."""
        grid = np.unique(self.nodes)[::-1]
        mean = np.mean(
            [
                np.interp(-grid, -nodes, counts)
                for nodes, counts in zip(self.nodes, self.counts, strict=True)
            ],
            axis=0,
        )
        return float(np.interp(number, mean, grid))


def estimate_density(operator: NormalisedOperator, stream: np.random.Generator) -> DensityOfStates:
    """Stochastic Lanczos quadrature; the null vector of L is left out.

    Args:
        operator: The normalised adjacency.
        stream: Draws the probes.
    """
    diagonal, off_diagonal = _lanczos(operator, stream)
    nodes, counts = [], []
    for probe in range(PROBES):
        values, vectors = scipy.linalg.eigh_tridiagonal(diagonal[probe], off_diagonal[probe, :-1])
        weight = vectors[0, ::-1] ** 2 * (operator.num_nodes - 1)
        nodes.append(values[::-1])
        # half of its own weight lies above a node of a quadrature rule
        counts.append(np.cumsum(weight) - weight / 2)
    return DensityOfStates(np.array(nodes), np.array(counts))


def _lanczos(operator: NormalisedOperator, stream: np.random.Generator) -> tuple[Array, Array]:
    """Coefficients of ``PROBES`` independent Lanczos runs, [probes, steps] each."""
    null = operator.null_vector()
    current = stream.standard_normal((operator.num_nodes, PROBES), dtype=np.float32)
    current = current.astype(operator.dtype, copy=False)
    subtract_projection(null, gram(null, current), current)
    current /= np.linalg.norm(current, axis=0)
    before = np.zeros_like(current)
    diagonal, off_diagonal = np.zeros((PROBES, STEPS)), np.zeros((PROBES, STEPS))
    for step in range(STEPS):
        image = operator.multiply(current)
        if step:
            subtract_scaled(before, off_diagonal[:, step - 1], image)
        diagonal[:, step] = column_products(image, current)
        subtract_scaled(current, diagonal[:, step], image)
        subtract_projection(null, gram(null, image), image)
        length = np.sqrt(column_products(image, image))
        # an exhausted Krylov space: what follows has no weight
        off_diagonal[:, step] = np.where(length < EXHAUSTED, 0.0, length)
        image *= (1 / np.maximum(length, EXHAUSTED)).astype(operator.dtype)
        before, current = current, image
    return diagonal, off_diagonal
