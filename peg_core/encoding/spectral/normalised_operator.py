"""The normalised adjacency matrix of one connected component, as an operator."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from peg_core.encoding.row_chunks import column_products, scale_rows, subtract_scaled
from peg_core.encoding.spectral.eigenpairs import Eigenpairs
from peg_core.graph.graph_store import FloatArray, GraphStore
from peg_core.kernels.sparse_product import BLOCK_WIDTHS, balanced_rows, recurrence_step


class NormalisedOperator:
    """``N = D^-1/2 A D^-1/2`` on blocks of columns; ``L = I - N``.

    Blocks are held as ``z = D^-1/2 x`` while they are multiplied, see
    :mod:`peg_core.kernels.sparse_product`.

    Args:
        graph: A graph without isolated nodes.
        dtype: float32, or float64 for residuals below about 1e-6.
    """

    def __init__(self, graph: GraphStore, dtype: npt.DTypeLike = np.float32) -> None:
        degrees = graph.weighted_degrees
        if len(degrees) == 0 or float(degrees.min()) <= 0:
            raise ValueError("every node of a component needs an edge of positive weight")
        self.graph = graph
        self.dtype = np.dtype(dtype)
        self.root_degrees = np.sqrt(degrees).astype(self.dtype)[:, None]  # [num_nodes, 1]
        self.inverse_root_degrees = (1 / np.sqrt(degrees)).astype(self.dtype)[:, None]
        self._inverse_degrees = (1 / degrees).astype(self.dtype)
        self._weights = None if graph.weights is None else graph.weights.astype(self.dtype)
        self._cuts = balanced_rows(graph.indptr)
        self.applications = 0

    @property
    def num_nodes(self) -> int:
        return self.graph.num_nodes

    def null_vector(self) -> FloatArray:
        """The eigenvector of L for eigenvalue 0, [num_nodes, 1], length 1."""
        return self.root_degrees / np.linalg.norm(self.root_degrees.astype(np.float64))

    def step(
        self, current: FloatArray, previous: FloatArray, *, alpha: float, beta: float, gamma: float
    ) -> None:
        """``previous <- (alpha D^-1 A + beta) current + gamma previous`` for ``z`` blocks."""
        recurrence_step(
            self.graph.indptr,
            self.graph.indices,
            self._weights,
            self._inverse_degrees,
            current,
            previous,
            alpha=alpha,
            beta=beta,
            gamma=gamma,
            cuts=self._cuts,
        )
        self.applications += current.shape[1]

    def empty_block(self, width: int) -> FloatArray:
        """Memory for a block, [num_nodes, width]."""
        return np.empty((self.num_nodes, width), dtype=self.dtype)

    def multiply(self, block: FloatArray) -> FloatArray:
        """``N x`` for a block of columns, [num_nodes, width]."""
        width = padded_width(block.shape[1])
        scaled = np.zeros((self.num_nodes, width), dtype=self.dtype)
        scale_rows(block, self.inverse_root_degrees, scaled[:, : block.shape[1]])
        product = np.zeros_like(scaled)
        self.step(scaled, product, alpha=1.0, beta=0.0, gamma=0.0)
        scale_rows(product, self.root_degrees, product)
        return product[:, : block.shape[1]]


def padded_width(width: int) -> int:
    """The narrowest block the kernel knows that holds ``width`` columns."""
    for known in BLOCK_WIDTHS:
        if width <= known:
            return known
    raise ValueError(f"a block is {width} columns wide, at most {BLOCK_WIDTHS[-1]} are possible")


def rayleigh_quotients(
    operator: NormalisedOperator, vectors: FloatArray
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Eigenvalues of L and true residuals ``||L u - lambda u||`` of unit columns.

    Args:
        operator: The normalised adjacency.
        vectors: [num_nodes, count].

    Returns:
        Rayleigh quotients and residual norms, [count] each.
    """
    values, residuals = [], []
    widest = BLOCK_WIDTHS[-1]
    for first in range(0, vectors.shape[1], widest):
        block = vectors[:, first : first + widest]
        value, residual = _quotients_of_block(operator, block)
        values.append(value)
        residuals.append(residual)
    return np.concatenate(values), np.concatenate(residuals)


def sorted_eigenpairs(
    operator: NormalisedOperator, columns: FloatArray, *, solver: str
) -> Eigenpairs:
    """Orthonormal Ritz vectors as eigenpairs, by their eigenvalue of L."""
    values, residuals = rayleigh_quotients(operator, columns)
    order = np.argsort(values, kind="stable")
    return Eigenpairs(
        values[order], columns[:, order], residuals[order], solver, operator.applications
    )


def _quotients_of_block(
    operator: NormalisedOperator, block: FloatArray
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    image = operator.multiply(block)
    squared_length = column_products(block, block)
    quotient = column_products(block, image) / squared_length
    subtract_scaled(block, quotient, image)
    return 1 - quotient, np.sqrt(column_products(image, image) / squared_length)
