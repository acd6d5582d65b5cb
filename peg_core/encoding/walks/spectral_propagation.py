"""Smoothing of positions along the graph by a band of its spectrum.

Zhang et al., ProNE: Fast and scalable network representation learning, 2019: the filter
``exp(-((lambda - mu)^2 - 1) theta / 2)`` of the random-walk Laplacian, expanded in
Chebyshev polynomials with Bessel coefficients, then one more mean over neighbours.
"""

from __future__ import annotations

import numpy as np
import scipy.special

from peg_core.encoding.spectral.normalised_operator import padded_width
from peg_core.graph.graph_store import FloatArray, GraphStore
from peg_core.kernels.sparse_product import BLOCK_WIDTHS, balanced_rows, recurrence_step

ORDER = 10
CENTRE = 0.2  # mu
SHARPNESS = 0.5  # theta


def propagate(graph: GraphStore, positions: FloatArray) -> FloatArray:
    """Filtered positions, [num_nodes, dimensions]; columns do not depend on each other."""
    result = np.empty_like(positions)
    widest = BLOCK_WIDTHS[-1]
    for first in range(0, positions.shape[1], widest):
        own = positions[:, first : first + widest]
        width = own.shape[1]
        block = np.zeros((graph.num_nodes, padded_width(width)), dtype=positions.dtype)
        block[:, :width] = own
        result[:, first : first + width] = propagate_block(graph, block)[:, :width]
    return result


def propagate_block(graph: GraphStore, block: FloatArray) -> FloatArray:
    """A block of columns of a width that the kernel knows."""
    degrees = graph.weighted_degrees
    inverse = np.divide(1, degrees, out=np.zeros_like(degrees), where=degrees > 0)
    weights = None if graph.weights is None else graph.weights.astype(block.dtype)
    arrays = (graph.indptr, graph.indices, weights, inverse.astype(block.dtype))
    cuts = balanced_rows(graph.indptr)

    def multiply(current: FloatArray) -> FloatArray:
        """``(L - mu I) current`` with ``L = I - P``."""
        out = np.zeros_like(current)
        beta = 1 - CENTRE
        recurrence_step(*arrays, current, out, alpha=-1.0, beta=beta, gamma=0.0, cuts=cuts)
        return out

    bessel = scipy.special.iv(np.arange(ORDER), SHARPNESS)
    before, current = block, 0.5 * multiply(multiply(block)) - block
    total = bessel[0] * before - 2 * bessel[1] * current
    for number in range(2, ORDER):
        following = multiply(multiply(current)) - 2 * current - before
        total += (-1) ** number * 2 * bessel[number] * following
        before, current = current, following
    difference = (block - total).astype(block.dtype)
    out = difference.copy()  # the mean with the node itself, which keeps isolated nodes finite
    recurrence_step(*arrays, difference, out, alpha=1.0, beta=0.0, gamma=1.0, cuts=cuts)
    return out
