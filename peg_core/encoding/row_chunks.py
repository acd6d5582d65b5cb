"""Dense work on tall blocks, chunk of rows by chunk of rows.

Each function handles rows independently or sums small matrices over chunks, so
that tasks on many machines can run the same code on their own rows. Threads take
chunks while BLAS itself stays at one thread: its own threads wait for each other in
busy loops, which on shared cores costs several times the work.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numba
import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import FloatArray

try:
    from threadpoolctl import threadpool_limits
except ImportError:  # then OMP_NUM_THREADS is what limits BLAS
    threadpool_limits = None

CHUNK_ROWS = 4_096

Matrix = npt.NDArray[np.float64]
Result = TypeVar("Result")


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS at one thread, so that the chunks' threads do not multiply with its own."""
    if threadpool_limits is None:
        yield
        return
    with threadpool_limits(limits=1, user_api="blas"):
        yield


def chunks(num_rows: int) -> Iterator[slice]:
    """Consecutive ranges of rows."""
    for start in range(0, num_rows, CHUNK_ROWS):
        yield slice(start, min(start + CHUNK_ROWS, num_rows))


def map_chunks(work: Callable[[slice], Result], num_rows: int) -> Iterator[Result]:
    """``work`` on every chunk, results in order, by ``numba.get_num_threads()`` threads."""
    threads = min(numba.get_num_threads(), -(-num_rows // CHUNK_ROWS))
    if threads <= 1:
        yield from map(work, chunks(num_rows))
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(work, chunks(num_rows))


def gram(left: FloatArray, right: FloatArray) -> Matrix:
    """``left^T right``, summed over chunks in float64, [left columns, right columns]."""
    if left.shape[1] > right.shape[1]:  # BLAS is faster with the narrow block first
        return gram(right, left).T
    total = np.zeros((left.shape[1], right.shape[1]))
    for part in map_chunks(lambda rows: left[rows].T @ right[rows], len(left)):
        total += part
    return total


def subtract_projection(basis: FloatArray, coefficients: Matrix, block: FloatArray) -> None:
    """``block -= basis coefficients``, in place."""
    factor = coefficients.astype(block.dtype)

    def subtract(rows: slice) -> None:
        block[rows] -= basis[rows] @ factor

    for _ in map_chunks(subtract, len(block)):
        pass


def rotate(block: FloatArray, rotation: Matrix, out: FloatArray) -> None:
    """``out = block rotation``; ``out`` may be the first columns of ``block``."""
    factor = np.ascontiguousarray(rotation, dtype=block.dtype)

    def turn(rows: slice) -> None:
        out[rows] = block[rows] @ factor

    for _ in map_chunks(turn, len(block)):
        pass


def scale_rows(block: FloatArray, factors: FloatArray, out: FloatArray) -> None:
    """``out = diag(factors) block``; ``factors`` is [num_rows, 1]."""

    def scale(rows: slice) -> None:
        np.multiply(block[rows], factors[rows], out=out[rows])

    for _ in map_chunks(scale, len(block)):
        pass
