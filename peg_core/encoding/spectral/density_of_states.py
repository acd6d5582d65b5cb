"""Where the eigenvalues lie, estimated from a few random vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.linalg

from peg_core.encoding.row_chunks import (
    column_products,
    gram,
    subtract_projection,
    subtract_scaled,
)
from peg_core.encoding.spectral.normalised_operator import NormalisedOperator
from peg_core.graph.graph_store import FloatArray

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

    @property
    def total(self) -> float:
        """Eigenvalues that the counts see, about all."""
        return float(self.counts[:, -1].mean())

    def value_at(self, number: float) -> float:
        """An eigenvalue with at least about ``number`` eigenvalues above it.

        Counts are taken as steps: interpolating them would put eigenvalues into a
        gap of the spectrum, and a filter that cuts there enlarges too few.
        """
        grid = np.unique(self.nodes)[::-1]
        total = np.zeros(len(grid))
        for nodes, counts in zip(self.nodes, self.counts, strict=True):
            passed = np.searchsorted(-nodes, -grid, side="right")
            total += np.concatenate([[0.0], counts])[passed]
        index = int(np.searchsorted(total / len(self.nodes), number))
        return float(grid[min(index, len(grid) - 1)])


def estimate_density(
    operator: NormalisedOperator,
    stream: np.random.Generator,
    *,
    steps: int = STEPS,
    deflated: FloatArray | None = None,
) -> DensityOfStates:
    """Stochastic Lanczos quadrature; the null vector of L is left out.

    Args:
        operator: The normalised adjacency.
        stream: Draws the probes.
        steps: Products with N per probe.
        deflated: Orthonormal columns whose span is left out too, [num_nodes, any].
    """
    left_out = [operator.null_vector(), *([] if deflated is None else [deflated])]
    diagonal, off_diagonal = _lanczos(operator, stream, steps, left_out)
    nodes, counts = [], []
    for probe in range(PROBES):
        values, vectors = scipy.linalg.eigh_tridiagonal(diagonal[probe], off_diagonal[probe, :-1])
        weight = vectors[0, ::-1] ** 2 * (operator.num_nodes - 1)
        nodes.append(values[::-1])
        # half of its own weight lies above a node of a quadrature rule
        counts.append(np.cumsum(weight) - weight / 2)
    return DensityOfStates(np.array(nodes), np.array(counts))


def _lanczos(
    operator: NormalisedOperator,
    stream: np.random.Generator,
    steps: int,
    left_out: list[FloatArray],
) -> tuple[Array, Array]:
    """Coefficients of ``PROBES`` independent Lanczos runs, [probes, steps] each."""
    current = stream.standard_normal((operator.num_nodes, PROBES), dtype=np.float32)
    current = current.astype(operator.dtype, copy=False)
    for columns in left_out:
        subtract_projection(columns, gram(columns, current), current)
    current /= np.linalg.norm(current, axis=0)
    before = np.zeros_like(current)
    diagonal, off_diagonal = np.zeros((PROBES, steps)), np.zeros((PROBES, steps))
    for step in range(steps):
        image = operator.multiply(current)
        if step:
            subtract_scaled(before, off_diagonal[:, step - 1], image)
        diagonal[:, step] = column_products(image, current)
        subtract_scaled(current, diagonal[:, step], image)
        for columns in left_out:
            subtract_projection(columns, gram(columns, image), image)
        length = np.sqrt(column_products(image, image))
        # an exhausted Krylov space: what follows has no weight
        off_diagonal[:, step] = np.where(length < EXHAUSTED, 0.0, length)
        image *= (1 / np.maximum(length, EXHAUSTED)).astype(operator.dtype)
        before, current = current, image
    return diagonal, off_diagonal
