import numba
import numpy as np
import pytest

from peg_core.encoding.walks import table_replicas
from peg_core.encoding.walks.skip_gram import Tables
from peg_core.encoding.walks.table_replicas import train_in_rounds


@pytest.fixture
def two_threads():
    if numba.config.NUMBA_NUM_THREADS < 2:
        pytest.skip("numba has one thread here")
    before = numba.get_num_threads()
    numba.set_num_threads(2)
    yield
    numba.set_num_threads(before)


def count_work(tables, span):
    """Adds one to a row of its own for every piece of work, and to the first row of both."""
    for number in range(span.start, span.stop):
        tables.inputs[1 + number] += 1
        tables.outputs[0] += 1
    return 2.0 * (span.stop - span.start), span.stop - span.start


def zeros():
    return Tables(np.zeros((30, 8), np.float32), np.zeros((30, 8), np.float32))


@pytest.mark.parametrize("most_bytes", [table_replicas.MOST_BYTES, 0])
def test_every_piece_of_work_reaches_the_tables_once(two_threads, monkeypatch, most_bytes):
    monkeypatch.setattr(table_replicas, "MOST_BYTES", most_bytes)
    tables = zeros()
    totals = train_in_rounds(tables, count_work, 29, 6)
    np.testing.assert_array_equal(totals, [58, 29])
    np.testing.assert_array_equal(tables.inputs[1:], np.ones((29, 8)))
    if most_bytes:  # without copies, threads may write over each other
        np.testing.assert_array_equal(tables.outputs[0], np.full(8, 29))


def test_one_table_stays_one_table(two_threads):
    inputs = np.zeros((30, 8), np.float32)
    tables = Tables(inputs, inputs)
    train_in_rounds(tables, count_work, 29, 6)
    np.testing.assert_array_equal(inputs[0], np.full(8, 29))
    np.testing.assert_array_equal(inputs[1:], np.ones((29, 8)))


def test_one_thread_trains_the_tables_themselves():
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        tables, seen = zeros(), []
        train_in_rounds(tables, lambda own, _: seen.append(own) or (0.0, 1), 10, 4)
    finally:
        numba.set_num_threads(before)
    assert all(own is tables for own in seen)
    assert len(seen) == 3
