"""Threads that take spans of rows.

Kernels and BLAS calls release the interpreter's lock, so plain threads suffice. They
sleep while they wait; the threads of BLAS and of numba's parallel loops wait in busy
loops, which on shared cores costs several times the work.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numba
from threadpoolctl import threadpool_limits

# More spans than threads, so that a thread that is held up does not hold up the others.
SPANS_PER_THREAD = 4
# Fewer rows than this are not worth waking a thread.
SMALLEST_SPAN = 2_048

Item = TypeVar("Item")
Result = TypeVar("Result")


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS at one thread, so that its threads do not multiply with ours."""
    with threadpool_limits(limits=1, user_api="blas"):
        yield


def row_spans(num_rows: int) -> list[slice]:
    """Ranges of rows for ``numba.get_num_threads()`` threads."""
    threads = numba.get_num_threads()
    count = 1 if threads == 1 else min(SPANS_PER_THREAD * threads, num_rows // SMALLEST_SPAN)
    cuts = [num_rows * i // max(count, 1) for i in range(max(count, 1) + 1)]
    return [slice(a, b) for a, b in itertools.pairwise(cuts)]


def map_spans(work: Callable[[Item], Result], spans: Sequence[Item]) -> list[Result]:
    """``work`` on every span by ``numba.get_num_threads()`` threads, results in order."""
    threads = min(numba.get_num_threads(), len(spans))
    if threads <= 1:
        return [work(span) for span in spans]
    return list(_pool(threads, os.getpid()).map(work, spans))


@functools.lru_cache(maxsize=4)
def _pool(threads: int, process: int) -> ThreadPoolExecutor:  # noqa: ARG001
    """A pool that stays; a forked process has none of its parent's threads, so its own."""
    return ThreadPoolExecutor(threads, thread_name_prefix="peg-rows")
