"""phi on every edge and its gradients, a few edges at a time.

The layers of phi are so narrow that as products of matrices they spend their time moving
[num_edges, hidden] numbers, on the way back most of all. Here the hidden values of some edges
stay in the cache and are computed again on the way back.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from peg_core.kernels.compiled_loops import compiled_loops_apply

Array = npt.NDArray[Any]

# Edges whose hidden values are held at a time.
TILE = 256
# Gradients are added up in this many sums, then those in order: threads have no say.
PIECES = 16
FAST = {"contract", "reassoc", "nsz"}


class GateFunction(torch.autograd.Function):
    """``sigmoid(outer . relu(inner measures + bias) + offset)`` for [num_edges, k] measures."""

    @staticmethod
    def forward(
        ctx: Any, measures: Tensor, inner: Tensor, bias: Tensor, outer: Tensor, offset: Tensor
    ) -> Tensor:
        """Shapes: inner [hidden, k], bias [hidden], outer [1, hidden], offset [1]."""
        saved = [value.detach().contiguous() for value in (measures, inner, bias, outer)]
        columns, weights, biases, outers = (value.numpy() for value in saved)
        out = torch.from_numpy(_gate(columns, weights, biases, outers[0], offset.item()))
        ctx.save_for_backward(*saved, out)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        measures, inner, bias, outer, out = (value.numpy() for value in ctx.saved_tensors)
        before = gradient.contiguous().numpy()
        sums = _gate_back(measures, inner, bias, outer[0], out, before).sum(axis=0)
        values = torch.from_numpy(sums.astype(np.float32))  # [hidden + 1, k + 2]
        k = inner.shape[1]
        for_inner, for_bias, for_outer = values[:-1, :k], values[:-1, k], values[:-1, k + 1]
        return None, for_inner, for_bias, for_outer[None], values[-1, k : k + 1]


def can_gate(measures: Tensor) -> bool:
    """Whether the compiled loops apply; they give no gradients of the measures."""
    return compiled_loops_apply(measures.device, measures.dtype) and not measures.requires_grad


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _hidden(columns: Array, inner: Array, bias: Array, unit: int, count: int, out: Array) -> None:
    """A hidden unit of the edges of a tile, before its ReLU."""
    for edge in range(count):
        out[edge] = bias[unit]
    for k in range(inner.shape[1]):
        weight = inner[unit, k]
        for edge in range(count):
            out[edge] += weight * columns[k, edge]


@numba.njit(cache=True, nogil=True)
def _columns(measures: Array, start: int, count: int, out: Array) -> None:
    for edge in range(count):
        for k in range(measures.shape[1]):
            out[k, edge] = measures[start + edge, k]


@numba.njit(cache=True, nogil=True, parallel=True, fastmath=FAST)
def _gate(measures: Array, inner: Array, bias: Array, outer: Array, offset: float) -> Array:
    edges, k = measures.shape
    out = np.empty(edges, dtype=np.float32)
    for piece in numba.prange(PIECES):
        columns = np.empty((k, TILE), dtype=np.float32)
        value = np.empty(TILE, dtype=np.float32)
        total = np.empty(TILE, dtype=np.float32)
        stop = edges * (piece + 1) // PIECES
        for start in range(edges * piece // PIECES, stop, TILE):
            count = min(TILE, stop - start)
            _columns(measures, start, count, columns)
            total[:] = np.float32(offset)
            for unit in range(len(bias)):
                _hidden(columns, inner, bias, unit, count, value)
                weight = outer[unit]
                for edge in range(count):
                    total[edge] += weight * max(value[edge], np.float32(0))
            for edge in range(count):
                out[start + edge] = np.float32(1) / (np.float32(1) + np.exp(-total[edge]))
    return out


@numba.njit(cache=True, nogil=True, parallel=True, fastmath=FAST)
def _gate_back(
    measures: Array, inner: Array, bias: Array, outer: Array, out: Array, gradient: Array
) -> Array:
    """[PIECES, hidden + 1, k + 2]: gradients of a unit's weights, bias, outer; last the offset."""
    edges, k = measures.shape
    sums = np.zeros((PIECES, len(bias) + 1, k + 2), dtype=np.float64)
    for piece in numba.prange(PIECES):
        columns = np.empty((k, TILE), dtype=np.float32)
        value = np.empty(TILE, dtype=np.float32)
        before = np.empty(TILE, dtype=np.float32)
        stop = edges * (piece + 1) // PIECES
        for start in range(edges * piece // PIECES, stop, TILE):
            count = min(TILE, stop - start)
            _columns(measures, start, count, columns)
            whole = np.float32(0)
            for edge in range(count):
                level = out[start + edge]
                before[edge] = gradient[start + edge] * level * (np.float32(1) - level)
                whole += before[edge]
            sums[piece, -1, k] += whole
            for unit in range(len(bias)):
                _hidden(columns, inner, bias, unit, count, value)
                for_outer, for_bias = np.float32(0), np.float32(0)
                for edge in range(count):
                    active = value[edge] > 0
                    for_outer += before[edge] * max(value[edge], np.float32(0))
                    value[edge] = before[edge] if active else np.float32(0)
                    for_bias += value[edge]
                sums[piece, unit, k + 1] += for_outer
                sums[piece, unit, k] += outer[unit] * for_bias
                for column in range(k):
                    product = np.float32(0)
                    for edge in range(count):
                        product += value[edge] * columns[column, edge]
                    sums[piece, unit, column] += outer[unit] * product
    return sums
