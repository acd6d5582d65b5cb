"""Tables that several threads train, each on a copy of its own.

Threads that write to one table take its cache lines from each other: on two cores that made
training slower than on one. Here every thread trains a copy, and after a short round what each
of them changed is added up. With as many threads the result is the same, number by number.
In large tables threads rarely meet, and share them without locks (Hogwild).
"""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np
import numpy.typing as npt

from peg_core.encoding.walks.skip_gram import Float32Array, Tables
from peg_core.kernels.thread_spans import map_spans, row_spans

Train = Callable[[Tables, slice], tuple[float, int]]

# Rounds of a pass: more follow a single thread more closely, fewer add up less often.
ROUNDS = 32
# Larger tables are shared: they lie in memory, not in a cache that two cores fight for.
MOST_BYTES = 64 * 2**20


def train_in_rounds(
    tables: Tables, train: Train, work: int, round_size: int
) -> npt.NDArray[np.float64]:
    """Train with all threads; returns the sums of what ``train`` returns, [2].

    Args:
        tables: Changed in place.
        train: Trains on a part of the work and changes the tables that it is given.
        work: How much there is, for example the number of starts.
        round_size: Work of all threads between two additions.
    """
    threads = numba.get_num_threads()
    size = max(round_size // threads, 1)
    spans = [slice(a, min(a + size, work)) for a in range(0, work, size)]
    if threads == 1:
        return np.sum([train(tables, span) for span in spans], axis=0, dtype=np.float64)
    if sum(table.nbytes for table in tables) > MOST_BYTES:
        found = map_spans(lambda span: train(tables, span), spans)
        return np.sum(found, axis=0, dtype=np.float64)
    copies = [_copy(tables) for _ in range(threads)]
    totals = np.zeros(2)
    for first in range(0, len(spans), threads):
        parts = list(zip(copies, spans[first : first + threads], strict=False))
        totals += np.sum(map_spans(lambda part: train(*part), parts), axis=0)
        _add_up(tables, copies)
    return totals


def _copy(tables: Tables) -> Tables:
    inputs = tables.inputs.copy()
    return Tables(inputs, inputs if tables.outputs is tables.inputs else tables.outputs.copy())


def _add_up(tables: Tables, copies: list[Tables]) -> None:
    """Give the tables and all copies what every copy changed."""
    pairs = [(tables.inputs, [copy.inputs for copy in copies])]
    if tables.outputs is not tables.inputs:
        pairs.append((tables.outputs, [copy.outputs for copy in copies]))
    for table, others in pairs:
        work = [
            (table[span], tuple(other[span] for other in others)) for span in row_spans(len(table))
        ]
        map_spans(lambda rows: _add_changes(*rows), work)


@numba.njit(cache=True, nogil=True)
def _add_changes(table: Float32Array, copies: tuple[Float32Array, ...]) -> None:
    for row in range(table.shape[0]):
        for column in range(table.shape[1]):
            value = table[row, column]
            total = value
            for number in range(len(copies)):
                total += copies[number][row, column] - value
            table[row, column] = total
            for number in range(len(copies)):
                copies[number][row, column] = total
