"""Weighted sums over the neighbours of nodes, without a copy of any neighbour.

``out[t] = sum_e c_e x[s_e]`` over the edges of target t. Gathering ``x[s]`` first, as
message passing usually does, writes and reads [num_edges, width] several times; on a
CPU that is most of a training step. Elsewhere the usual way is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from peg_core.kernels.compiled_loops import compiled_loops_apply

Array = npt.NDArray[Any]

# Rows are dealt to threads in this many pieces of about equal work.
PIECES = 64


@dataclass(frozen=True)
class ReverseRows:
    """The edges ordered by their source.

    Args:
        indptr: [num_sources + 1].
        edges: [num_edges], the edges of each source.
        targets: [num_edges], their targets.
    """

    indptr: Array
    edges: Array
    targets: Array


def reverse_rows(indptr: Tensor, sources: Tensor, num_sources: int) -> ReverseRows:
    """Order edges by their source."""
    return ReverseRows(*_reverse(indptr.numpy(), sources.numpy(), num_sources))


class GatedSum(torch.autograd.Function):
    """The sum and its gradients, in compiled loops over all threads."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, coefficients: Tensor, messages: Any) -> Tensor:
        """``x`` is [num_sources, width], ``coefficients`` [num_edges]."""
        x, coefficients = x.detach().contiguous(), coefficients.detach().contiguous()
        ctx.messages = messages
        ctx.save_for_backward(x, coefficients)
        return torch.from_numpy(
            _sum_rows(
                messages.indptr.numpy(),
                messages.sources.numpy(),
                coefficients.numpy(),
                x.numpy(),
            )
        )

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        x, coefficients = ctx.saved_tensors
        messages = ctx.messages
        g = gradient.contiguous().numpy()
        for_x = for_coefficients = None
        if ctx.needs_input_grad[0]:
            reverse = messages.reverse
            for_x = torch.from_numpy(
                _sum_back(reverse.indptr, reverse.edges, reverse.targets, coefficients.numpy(), g)
            )
        if ctx.needs_input_grad[1]:
            for_coefficients = torch.from_numpy(
                _edge_products(messages.indptr.numpy(), messages.sources.numpy(), x.numpy(), g)
            )
        return for_x, for_coefficients, None


def can_sum(x: Tensor) -> bool:
    """Whether the compiled loops apply."""
    return compiled_loops_apply(x.device, x.dtype)


@numba.njit(cache=True, nogil=True)
def _pieces(indptr: Array) -> Array:
    """Cuts of the rows into pieces of about equal edges."""
    rows = len(indptr) - 1
    cuts = np.empty(PIECES + 1, dtype=np.int64)
    work = indptr[rows] - indptr[0] + rows
    row = 0
    for piece in range(PIECES):
        while row < rows and indptr[row] - indptr[0] + row < work * piece // PIECES:
            row += 1
        cuts[piece] = row
    cuts[0] = 0
    cuts[PIECES] = rows
    return cuts


@numba.njit(cache=True, nogil=True, parallel=True, fastmath={"contract", "reassoc"})
def _sum_rows(indptr: Array, sources: Array, coefficients: Array, x: Array) -> Array:
    width = x.shape[1]
    out = np.zeros((len(indptr) - 1, width), dtype=np.float32)
    cuts = _pieces(indptr)
    for piece in numba.prange(PIECES):
        for row in range(cuts[piece], cuts[piece + 1]):
            for edge in range(indptr[row], indptr[row + 1]):
                weight, source = coefficients[edge], sources[edge]
                for column in range(width):
                    out[row, column] += weight * x[source, column]
    return out


@numba.njit(cache=True, nogil=True, parallel=True, fastmath={"contract", "reassoc"})
def _sum_back(
    indptr: Array, edges: Array, targets: Array, coefficients: Array, gradient: Array
) -> Array:
    width = gradient.shape[1]
    out = np.zeros((len(indptr) - 1, width), dtype=np.float32)
    cuts = _pieces(indptr)
    for piece in numba.prange(PIECES):
        for row in range(cuts[piece], cuts[piece + 1]):
            for index in range(indptr[row], indptr[row + 1]):
                weight, target = coefficients[edges[index]], targets[index]
                for column in range(width):
                    out[row, column] += weight * gradient[target, column]
    return out


@numba.njit(cache=True, nogil=True, parallel=True, fastmath={"contract", "reassoc"})
def _edge_products(indptr: Array, sources: Array, x: Array, gradient: Array) -> Array:
    width = x.shape[1]
    out = np.empty(len(sources), dtype=np.float32)
    cuts = _pieces(indptr)
    for piece in numba.prange(PIECES):
        for row in range(cuts[piece], cuts[piece + 1]):
            for edge in range(indptr[row], indptr[row + 1]):
                source = sources[edge]
                total = np.float32(0)
                for column in range(width):
                    total += gradient[row, column] * x[source, column]
                out[edge] = total
    return out


@numba.njit(cache=True, nogil=True)
def _reverse(indptr: Array, sources: Array, num_sources: int) -> tuple[Array, Array, Array]:
    """A counting sort: stable, so that sums are in one order always."""
    start = np.zeros(num_sources + 1, dtype=np.int64)
    for edge in range(len(sources)):
        start[sources[edge] + 1] += 1
    for source in range(num_sources):
        start[source + 1] += start[source]
    edges = np.empty(len(sources), dtype=np.int64)
    targets = np.empty(len(sources), dtype=np.int64)
    free = start[:-1].copy()
    for row in range(len(indptr) - 1):
        for edge in range(indptr[row], indptr[row + 1]):
            source = sources[edge]
            edges[free[source]] = edge
            targets[free[source]] = row
            free[source] += 1
    return start, edges, targets
