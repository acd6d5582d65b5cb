"""DeepWalk's matrix exactly: for graphs whose node pairs can be held.

Qiu et al., Network embedding as matrix factorization, 2018: skip-gram with negative
sampling factorises ``log(volume / (b T) sum_r P^r D^-1)``.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from peg_core.encoding.walks.randomised_svd import SparseMatrix
from peg_core.graph.graph_store import FloatArray, GraphStore
from peg_core.kernels.sparse_product import BLOCK_WIDTHS, balanced_rows, recurrence_step
from peg_core.kernels.thread_spans import map_spans

WIDTH = BLOCK_WIDTHS[-1]


def exact_matrix(graph: GraphStore, *, window: int, negatives: int) -> SparseMatrix:
    """The truncated logarithm of DeepWalk's matrix; only positive entries are kept.

    Args:
        graph: The graph.
        window: T of the paper.
        negatives: Noise pairs per true pair, b of the paper.
    """
    degrees = graph.weighted_degrees
    inverse = np.divide(1, degrees, out=np.zeros_like(degrees), where=degrees > 0)
    inverse = inverse.astype(np.float32)
    scale = np.float32(degrees.sum() / (negatives * window))
    weights = None if graph.weights is None else np.asarray(graph.weights, np.float32)
    cuts = balanced_rows(graph.indptr)
    lengths, indices, values = [np.zeros(1, np.int64)], [], []
    for first in range(0, graph.num_nodes, WIDTH):
        nodes = np.arange(first, min(first + WIDTH, graph.num_nodes))
        current = np.zeros((graph.num_nodes, WIDTH), dtype=np.float32)
        following = np.zeros_like(current)
        for _ in range(window):  # Horner: P (I + P (I + ...))
            current[nodes, nodes - first] += 1
            arrays = (graph.indptr, graph.indices, weights, inverse, current, following)
            recurrence_step(*arrays, alpha=1.0, beta=0.0, gamma=0.0, cuts=cuts)
            current, following = following, current
        rows = np.ascontiguousarray(current.T[: len(nodes)])  # [nodes, num_nodes]
        factors = scale * inverse[nodes]
        kept = map_spans(lambda pair: _keep(*pair), list(zip(rows, factors, strict=True)))
        lengths.append(np.array([len(own) for own, _ in kept], dtype=np.int64))
        indices += [own for own, _ in kept]
        values += [value for _, value in kept]
    return SparseMatrix(
        np.cumsum(np.concatenate(lengths)), np.concatenate(indices), np.concatenate(values)
    )


@numba.njit(cache=True, nogil=True)
def _keep(row: FloatArray, factor: float) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Columns and logarithms of the entries above 1."""
    count = 0
    for column in range(len(row)):
        count += row[column] * factor > 1
    columns = np.empty(count, dtype=np.int32)
    values = np.empty(count, dtype=np.float32)
    count = 0
    for column in range(len(row)):
        value = row[column] * factor
        if value > 1:
            columns[count] = column
            values[count] = np.log(value)
            count += 1
    return columns, values
