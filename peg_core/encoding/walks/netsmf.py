"""DeepWalk's matrix from sampled walks.

Qiu et al., NetSMF: Large-scale network embedding as sparse matrix factorization, 2019.
A path of r steps through the graph in equilibrium has ends (u, x) with probability
``d_u (P^r)_ux / volume``. Here every path is begun at its end u, so that the samples of
a row are drawn by whoever owns the row, and a walk of ``window`` steps gives one path of
every length. A sample depends on (seed, entry of the graph) alone.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt
import scipy.sparse

from peg_core.encoding.walks.random_walks import (
    GOLDEN,
    WalkGraph,
    first_order_step,
    mix,
    start_state,
)
from peg_core.encoding.walks.randomised_svd import SparseMatrix
from peg_core.graph.graph_store import FloatArray, GraphStore, IntArray
from peg_core.kernels.thread_spans import map_spans
from peg_core.random_streams import stream_seed

# Samples that a thread holds at a time.
SPAN_SAMPLES = 2**22

Float32Array = npt.NDArray[np.float32]


class SampledRows(NamedTuple):
    """How often walks from a range of rows were seen where.

    Args:
        indptr: [rows + 1].
        indices: Ascending in a row, [entries].
        counts: [entries].
    """

    indptr: npt.NDArray[np.int64]
    indices: IntArray
    counts: npt.NDArray[np.int32]


def sample_rows(
    graph: GraphStore, rows: slice, *, window: int, samples: int, seed: int
) -> SampledRows:
    """Walk ``samples`` times over every edge of the rows, and on for ``window`` steps in all.

    Args:
        graph: The graph.
        rows: Rows to sample.
        window: Longest path, T of the paper.
        samples: Walks per entry of the adjacency.
        seed: Of the run.
    """
    walks = WalkGraph.of(graph)
    key = np.uint64(stream_seed(seed=seed, purpose="netsmf"))
    cuts = _cut_rows(graph, rows, window * samples)

    def sample(span: slice) -> SampledRows:
        return SampledRows(*_sample(*walks, span.start, span.stop, window, samples, key))

    parts = map_spans(sample, cuts)
    lengths = np.concatenate([np.diff(part.indptr) for part in parts] or [np.zeros(0, np.int64)])
    return SampledRows(
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.concatenate([part.indices for part in parts] or [graph.indices[:0]]),
        np.concatenate([part.counts for part in parts] or [np.zeros(0, np.int32)]),
    )


def _cut_rows(graph: GraphStore, rows: slice, samples_per_entry: int) -> list[slice]:
    """Consecutive ranges of rows with about ``SPAN_SAMPLES`` samples each."""
    most = max(SPAN_SAMPLES // samples_per_entry, 1)
    bounds = graph.indptr[rows.start : rows.stop + 1]
    goals = np.arange(bounds[0] + most, bounds[-1], most)
    inner = rows.start + np.searchsorted(bounds, goals)
    cuts = np.unique([rows.start, *inner.tolist(), rows.stop]).tolist()
    return [slice(a, b) for a, b in itertools.pairwise(cuts)]


@numba.njit(cache=True, nogil=True)
def _sample(
    indptr: IntArray,
    indices: IntArray,
    cumulative: Float32Array,
    first: int,
    stop: int,
    window: int,
    samples: int,
    key: np.uint64,
) -> tuple[npt.NDArray[np.int64], IntArray, npt.NDArray[np.int32]]:
    total = (indptr[stop] - indptr[first]) * samples * window
    seen = np.empty(total, dtype=indices.dtype)
    counts = np.empty(total, dtype=np.int32)
    bounds = np.zeros(stop - first + 1, dtype=np.int64)
    end = 0
    for row in range(first, stop):
        own = seen[end : end + (indptr[row + 1] - indptr[row]) * samples * window]
        position = 0
        for entry in range(indptr[row], indptr[row + 1]):
            for number in range(samples):
                state = start_state(key, entry * samples + number)
                node = np.int64(indices[entry])
                if len(cumulative):  # by weight; otherwise every edge in turn
                    node = first_order_step(indptr, indices, cumulative, row, mix(state))
                own[position] = node
                position += 1
                for _ in range(window - 1):
                    state += GOLDEN
                    node = first_order_step(indptr, indices, cumulative, node, mix(state))
                    own[position] = node
                    position += 1
        own.sort()
        kept = 0
        for i in range(position):  # equal ones become one, in place
            if kept == 0 or own[i] != own[kept - 1]:
                own[kept] = own[i]
                counts[end + kept] = 0
                kept += 1
            counts[end + kept - 1] += 1
        end += kept
        bounds[row - first + 1] = end
    return bounds, seen[:end].copy(), counts[:end].copy()


def row_factors(graph: GraphStore, *, window: int, samples: int) -> npt.NDArray[np.float64]:
    """What turns counts of a row into the mean of ``D P^r`` over r, [num_nodes]."""
    degrees = graph.degrees
    walks = np.maximum(degrees, 1) * (samples * window)
    return np.asarray(graph.weighted_degrees / walks, dtype=np.float64)


def log_entries(
    values: FloatArray, row_degrees: FloatArray, column_degrees: FloatArray, scale: float
) -> npt.NDArray[np.float32]:
    """``log(scale value / (d_u d_x))``, and 0 where that is negative, [entries]."""
    ratio = scale * values / (row_degrees * column_degrees)
    return np.log(np.maximum(ratio, 1.0)).astype(np.float32)


def sampled_matrix(
    graph: GraphStore, *, window: int, samples: int, negatives: int, seed: int
) -> SparseMatrix:
    """The truncated logarithm of DeepWalk's matrix, estimated; symmetric.

    Args:
        graph: The graph.
        window, samples: As in :func:`sample_rows`.
        negatives: Noise pairs per true pair, b of the paper.
        seed: Of the run.
    """
    found = sample_rows(graph, slice(0, graph.num_nodes), window=window, samples=samples, seed=seed)
    factors = row_factors(graph, window=window, samples=samples) / 2
    lengths = np.diff(found.indptr)
    values = (found.counts * np.repeat(factors, lengths)).astype(np.float32)
    shape = (graph.num_nodes, graph.num_nodes)
    half = scipy.sparse.csr_array((values, found.indices, found.indptr), shape=shape)
    whole = (half + half.T.tocsr()).tocsr()
    whole.sort_indices()
    degrees = graph.weighted_degrees
    rows = np.repeat(degrees, np.diff(whole.indptr))
    scale = float(degrees.sum()) / negatives
    whole.data = log_entries(whole.data, rows, degrees[whole.indices], scale)
    whole.eliminate_zeros()
    return SparseMatrix(whole.indptr.astype(np.int64), whole.indices, whole.data)
