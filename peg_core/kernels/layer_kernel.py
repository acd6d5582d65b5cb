"""Sums over neighbours with gated weights, row by row, without a list of messages."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from peg_core.kernels.intrinsics import prefetch_row

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]

# Neighbours whose rows are asked for ahead.
ROWS_AHEAD = 4
FAST = {"contract", "reassoc"}


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def gated_sums(
    start: int,
    stop: int,
    graph: tuple[Array, Array, FloatArray],
    codes: Array | None,
    inverse_roots: FloatArray,
    state: FloatArray,
    positions: tuple[FloatArray, ...],
    gate: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    squared: bool,
    out: FloatArray,
) -> None:
    """``out[i] = sum_v A_hat[u, v] gate(d(u, v)) state[v]`` for ``u = start + i``.

    Args:
        graph: indptr, indices and weights; no weights: an empty array.
        codes: Of the entries, or None; a kernel is compiled for either.
        inverse_roots: ``1 / sqrt(1 + degree)`` of every node, [num_nodes].
        state: [num_nodes, channels].
        positions: [num_nodes, dimensions] for every encoding.
        gate: First weights [gate_hidden, num_distances], their bias [num_codes, gate_hidden]
            for every code, 0 being that of loops, second weights [gate_hidden] and their
            bias [1].
        squared: Whether the gate reads squared distances.
        out: [stop - start, channels].
    """
    indptr, indices, weights = graph
    inner, biases, outer, offset = gate
    distances = np.zeros(len(positions), dtype=np.float32)
    bias = biases[0]
    own_gate = _gate(inner, bias, outer, offset, distances)
    for node in range(start, stop):
        row = out[node - start]
        own = own_gate * inverse_roots[node] * inverse_roots[node]
        for k in range(state.shape[1]):
            row[k] = own * state[node, k]
        last = indptr[node + 1]
        for entry in range(indptr[node], last):
            if entry + ROWS_AHEAD < last:
                ahead = indices[entry + ROWS_AHEAD]
                prefetch_row(state, ahead)
                for encoding in range(len(positions)):
                    prefetch_row(positions[encoding], ahead)
            neighbour = indices[entry]
            for encoding in range(len(positions)):
                length = _squared_distance(positions[encoding], node, neighbour)
                distances[encoding] = length if squared else np.sqrt(length)
            if codes is not None:
                bias = biases[codes[entry]]
            phi = _gate(inner, bias, outer, offset, distances)
            factor = phi * inverse_roots[node] * inverse_roots[neighbour]
            if len(weights):
                factor *= weights[entry]
            for k in range(state.shape[1]):
                row[k] += factor * state[neighbour, k]


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _squared_distance(positions: FloatArray, first: int, second: int) -> Any:
    total = np.float32(0)
    for k in range(positions.shape[1]):
        difference = positions[first, k] - positions[second, k]
        total += difference * difference
    return total


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _gate(
    inner: FloatArray,
    bias: FloatArray,
    outer: FloatArray,
    offset: FloatArray,
    distances: FloatArray,
) -> Any:
    """The logistic function of a small network over the distances."""
    total = offset[0]
    for j in range(len(bias)):
        hidden = bias[j]
        for k in range(len(distances)):
            hidden += inner[j, k] * distances[k]
        total += outer[j] * max(hidden, np.float32(0))
    one = np.float32(1)
    return one / (one + np.exp(-total))
