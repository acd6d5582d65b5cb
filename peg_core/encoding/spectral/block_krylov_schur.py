"""Filtered block Krylov-Schur: the cold solver for large components."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from peg_core.encoding.row_chunks import gram, rotate, subtract_projection
from peg_core.encoding.spectral.chebyshev_filter import ChebyshevFilter, choose_filter
from peg_core.encoding.spectral.density_of_states import DensityOfStates, estimate_density
from peg_core.encoding.spectral.eigenpairs import Eigenpairs, residual_limits
from peg_core.encoding.spectral.normalised_operator import (
    NormalisedOperator,
    rayleigh_quotients,
    sorted_eigenpairs,
)
from peg_core.encoding.spectral.solve_limits import CLUSTER_WIDTH, cluster_limits, is_large
from peg_core.graph.graph_store import FloatArray

Array = npt.NDArray[np.float64]

# Twice is enough, and in float32 also necessary; more only where columns were dependent.
MOST_PASSES = 6
WELL_CONDITIONED = 0.9
BLOCK_WIDTH = 32
OVERSAMPLING = 1.3
# A filter value up to which an eigenvalue does not count as enlarged.
ENLARGED = 1.2
MOST_RESTARTS = 60
STALLED_RESTARTS = 4


def solve_krylov_schur(
    operator: NormalisedOperator,
    *,
    wanted: int,
    extra: int,
    tolerance: float,
    budget: int,
    stream: np.random.Generator,
) -> Eigenpairs:
    """The smallest non-zero eigenvalues of L, from random vectors.

    Args:
        operator: The normalised adjacency of a connected component.
        wanted: Eigenpairs that must reach the tolerance.
        extra: Further eigenpairs, accurate enough to know their eigenvalues.
        tolerance: Largest ``||L u - lambda u||``.
        budget: Products with the adjacency after which no restart follows.
        stream: Draws the probes and the first block.
    """
    count = wanted + extra
    limits = residual_limits(wanted=wanted, extra=extra, tolerance=tolerance)
    density = estimate_density(operator, stream)
    number = OVERSAMPLING * count
    target = Target(limits, budget)
    if is_large(operator.num_nodes):
        cluster = find_cluster(density, number, 2 * count + 2 * BLOCK_WIDTH, tolerance)
        if cluster is not None:
            number, floor = cluster
            target = replace(target, floor=floor, tolerance=tolerance)
    # measured: the residual stagnates at about 1/50 of this
    precision = float(np.finfo(operator.dtype).eps) / tolerance / 8
    while True:
        chebyshev = choose_filter(density, number=number, precision=precision)
        basis = KrylovBasis(
            operator,
            width=BLOCK_WIDTH,
            capacity=min(2 * count + 2 * BLOCK_WIDTH, operator.num_nodes - 1 - BLOCK_WIDTH),
            stream=stream,
        )
        if _iterate(basis, chebyshev, target) or number > operator.num_nodes:
            break
        number *= 2
    return sorted_eigenpairs(operator, basis.columns[:, :count], solver="krylov_schur")


@dataclass(frozen=True)
class Target:
    """When to stop.

    Args:
        limits: Residuals to reach, [count].
        budget: Products with the adjacency after which no restart follows.
        floor: With p in a cluster, an eigenvalue of N that more than ``count`` exceed.
        tolerance: With p in a cluster, the one of the wanted eigenpairs.
    """

    limits: Array
    budget: int
    floor: float = -1.0
    tolerance: float | None = None

    @property
    def count(self) -> int:
        return len(self.limits)

    def excess(self, values: Array, residuals: Array) -> float:
        """The worst residual in units of its limit.

        An iteration that has found fewer copies of an eigenvalue than there are is not done,
        however small the residuals.
        """
        if self.tolerance is None:
            return float((residuals / self.limits).max())
        if 1 - values.max() < self.floor:
            return np.inf
        return float((residuals / cluster_limits(self.limits, values, self.tolerance)).max())


def find_cluster(
    density: DensityOfStates, number: float, capacity: int, tolerance: float
) -> tuple[float, float] | None:
    """How many eigenvalues to enlarge where p lies among more equal ones than fit the basis.

    A filter that cuts through a cluster separates nothing; one that cuts below enlarges all
    of it alike, and any of its vectors will do.

    Args:
        density: Where the eigenvalues of N lie.
        number: Eigenvalues that would be enlarged otherwise.
        capacity: Columns of the basis.
        tolerance: Of the wanted eigenpairs.

    Returns:
        The number, and an eigenvalue of N that all of the cluster exceed; None without one.
    """
    width = CLUSTER_WIDTH * tolerance
    floor = density.value_at(number) - width
    if density.value_at(number + capacity) < floor:
        return None
    while density.value_at(number) >= floor and number < density.total:
        number *= 2
    return number, floor


def _iterate(basis: KrylovBasis, chebyshev: ChebyshevFilter, target: Target) -> bool:
    """Extend and restart; False when the filter does not enlarge enough eigenvalues."""
    count = target.count
    best, stalled = np.inf, 0
    for _ in range(MOST_RESTARTS):
        basis.fill(chebyshev, target.limits)
        values, _ = basis.restart(min(count + BLOCK_WIDTH, basis.size - BLOCK_WIDTH))
        spent = basis.operator.applications >= target.budget
        if values[count - 1] < ENLARGED:
            return spent
        found, residuals = rayleigh_quotients(basis.operator, basis.columns[:, :count])
        worst = target.excess(found, residuals)
        if worst <= 1 or spent:
            return True
        stalled = 0 if worst < 0.8 * best else stalled + 1
        best = min(best, worst)
        if stalled >= STALLED_RESTARTS:
            break
    return True


class KrylovBasis:
    """An orthonormal basis of a block Krylov space of the filtered operator.

    ``filter(N) V = V projected + (residual block) coupling``. The first column of
    the memory is the null vector of L, against which everything is orthogonal.

    Args:
        operator: The normalised adjacency.
        width: Columns added per step.
        capacity: Columns kept at most.
        stream: Draws the first block, and blocks where the space is exhausted.
    """

    def __init__(
        self,
        operator: NormalisedOperator,
        *,
        width: int,
        capacity: int,
        stream: np.random.Generator,
    ) -> None:
        self.operator = operator
        self.width = width
        self.stream = stream
        self.memory = operator.empty_block(1 + capacity + width)
        self.memory[:, :1] = operator.null_vector()
        self.projected = np.zeros((capacity, capacity))
        self.coupling = np.zeros((width, width))
        self.capacity = capacity
        self.size = 0  # columns in the Krylov space; the residual block follows them
        self._block = operator.empty_block(width)
        self._workspace = operator.empty_block(width)
        self._append(self._random_block())

    @property
    def columns(self) -> FloatArray:
        """The basis, [num_nodes, size]."""
        return self.memory[:, 1 : 1 + self.size]

    def extend(self, chebyshev: ChebyshevFilter) -> None:
        """Move the residual block into the space and compute the next one."""
        start, self.size = self.size, self.size + self.width
        self._block[...] = self.columns[:, start:]
        image = chebyshev.apply(self.operator, self._block, self._workspace)
        coefficients, self.coupling = self._append(image)
        self.projected[: self.size, start : self.size] = coefficients
        self.projected[start : self.size, : self.size] = coefficients.T

    def fill(self, chebyshev: ChebyshevFilter, limits: Array) -> None:
        """Extend until the memory is full, or the first Ritz vectors seem accurate."""
        while self.size + self.width <= self.capacity:
            self.extend(chebyshev)
            if self.size > len(limits) + self.width and self._seems_accurate(limits):
                break

    def _seems_accurate(self, limits: Array) -> bool:
        """Whether the first Ritz vectors have residuals of L below the limits, about.

        Unwanted eigenvalues of the filtered operator lie in [-1, 1], so an error
        seen through the filter is at least the value minus 1 times the error in L,
        and was measured to be one to five times that.
        """
        values, residuals, _ = self._ritz(len(limits))
        return bool((residuals <= 2 * limits * (values - 1)).all())

    def _ritz(self, keep: int) -> tuple[Array, Array, Array]:
        square = self.projected[: self.size, : self.size]
        values, vectors = np.linalg.eigh((square + square.T) / 2)
        values, vectors = values[::-1][:keep], vectors[:, ::-1][:, :keep]
        return values, np.linalg.norm(self.coupling @ vectors[-self.width :], axis=0), vectors

    def restart(self, keep: int) -> tuple[Array, Array]:
        """Shrink the space to its ``keep`` leading Ritz vectors.

        Returns:
            Their Ritz values (of the filtered operator, descending) and residual
            norms, [keep] each.
        """
        values, residuals, vectors = self._ritz(keep)
        rotate(self.columns, vectors, self.memory[:, 1 : 1 + keep])
        end = 1 + self.size
        self.memory[:, 1 + keep : 1 + keep + self.width] = self.memory[:, end : end + self.width]
        self.projected[:] = 0
        self.projected[np.arange(keep), np.arange(keep)] = values
        self.size = keep
        return values, residuals

    def _append(self, image: FloatArray) -> tuple[Array, Array]:
        """Orthonormalise ``image`` against the basis and store it as residual block.

        Returns:
            Coefficients of the image in the basis, [size, width], and in the new
            block, [width, width].
        """
        basis = self.memory[:, : 1 + self.size]
        coefficients = np.zeros((1 + self.size, self.width))
        coupling = np.eye(self.width)
        for number in range(MOST_PASSES):
            product = gram(basis, image)
            subtract_projection(basis, product, image)
            coefficients += product @ coupling
            factor, condition = self._orthonormalise(image)
            coupling = factor @ coupling
            if number and condition > WELL_CONDITIONED:
                break
        self.memory[:, 1 + self.size : 1 + self.size + self.width] = image
        return coefficients[1:], coupling

    def _orthonormalise(self, image: FloatArray) -> tuple[Array, float]:
        """One pass towards orthonormal columns, in place.

        Directions that rounding leaves almost empty are enlarged only partly, and
        the next pass does the rest: what it then finds is rounding error, a random
        direction as good as any where the Krylov space is exhausted.

        Returns:
            The factor R of ``image = Q R``, [width, width], and the smallest
            eigenvalue of the scaled Gram matrix: near 1, Q is orthonormal.
        """
        square = gram(image, image)
        empty = np.flatnonzero(np.diag(square) == 0.0)
        if len(empty):
            image[:, empty] = self._random_block()[:, empty]
            square = gram(image, image)
        scale = np.sqrt(np.diag(square))
        values, vectors = np.linalg.eigh(square / np.outer(scale, scale))
        root = np.sqrt(np.maximum(values, np.finfo(image.dtype).eps * self.width))
        rotate(image, vectors / scale[:, None] / root, image)
        factor = root[:, None] * vectors.T * scale
        factor[:, empty] = 0.0
        return factor, 0.0 if len(empty) else float(values[0])

    def _random_block(self) -> FloatArray:
        shape = (self.operator.num_nodes, self.width)
        block = self.stream.standard_normal(shape, dtype=np.float32)
        return block.astype(self.operator.dtype, copy=False)
