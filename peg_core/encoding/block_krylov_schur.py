"""Filtered block Krylov-Schur: the cold solver for large components."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from peg_core.encoding.chebyshev_filter import ChebyshevFilter
from peg_core.encoding.normalised_operator import NormalisedOperator
from peg_core.encoding.row_chunks import gram, rotate, subtract_projection
from peg_core.graph.graph_store import FloatArray

Array = npt.NDArray[np.float64]


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

    def restart(self, keep: int) -> tuple[Array, Array]:
        """Shrink the space to its ``keep`` leading Ritz vectors.

        Returns:
            Their Ritz values (of the filtered operator, descending) and residual
            norms, [keep] each.
        """
        square = self.projected[: self.size, : self.size]
        values, vectors = np.linalg.eigh((square + square.T) / 2)
        values, vectors = values[::-1][:keep], vectors[:, ::-1][:, :keep]
        residuals = np.linalg.norm(self.coupling @ vectors[-self.width :], axis=0)
        rotate(self.columns, vectors, self.memory[:, 1 : 1 + keep])
        end = 1 + self.size
        self.memory[:, 1 + keep : 1 + keep + self.width] = self.memory[:, end : end + self.width]
        self.projected[:] = 0
        self.projected[np.arange(keep), np.arange(keep)] = values
        self.size = keep
        return values, residuals

    def _append(self, image: FloatArray) -> tuple[Array, Array]:
        """Orthonormalise ``image`` against the basis and store it as residual block.

        Twice is enough, and in float32 also necessary.

        Returns:
            Coefficients of the image in the basis, [size, width], and in the new
            block, [width, width].
        """
        basis = self.memory[:, : 1 + self.size]
        coefficients = np.zeros((1 + self.size, self.width))
        coupling = np.eye(self.width)
        for _ in range(2):
            product = gram(basis, image)
            subtract_projection(basis, product, image)
            coefficients += product @ coupling
            coupling = self._orthonormalise(image, basis) @ coupling
        self.memory[:, 1 + self.size : 1 + self.size + self.width] = image
        return coefficients[1:], coupling

    def _orthonormalise(self, image: FloatArray, basis: FloatArray) -> Array:
        """Make the columns orthonormal in place; returns R of ``image = Q R``."""
        square = gram(image, image)
        scale = np.sqrt(np.diag(square))
        largest = float(scale.max())
        scale = np.where(scale > 0, scale, 1.0)
        values, vectors = np.linalg.eigh(square / np.outer(scale, scale))
        floor = np.finfo(image.dtype).eps * self.width * 4
        good = values > floor
        root = np.sqrt(np.where(good, values, 1.0))
        rotate(image, vectors / scale[:, None] / root, image)
        triangle = (root * good)[:, None] * vectors.T * scale
        lost = np.flatnonzero(~good | (largest == 0.0))
        if len(lost):
            self._replace(image, basis, lost)
        return triangle

    def _replace(self, image: FloatArray, basis: FloatArray, lost: npt.NDArray[np.intp]) -> None:
        """Random directions where the Krylov space offers no new ones."""
        fresh = self._random_block()[:, : len(lost)]
        others = np.delete(np.arange(self.width), lost)
        kept = np.ascontiguousarray(image[:, others])
        for _ in range(2):
            subtract_projection(basis, gram(basis, fresh), fresh)
            subtract_projection(kept, gram(kept, fresh), fresh)
            fresh, _ = np.linalg.qr(fresh)
        image[:, lost] = fresh

    def _random_block(self) -> FloatArray:
        shape = (self.operator.num_nodes, self.width)
        return self.stream.standard_normal(shape, dtype=np.float32).astype(self.operator.dtype)
