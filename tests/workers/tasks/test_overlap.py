"""Threads around a computation: same items, same order, errors come through."""

import threading
import time

import pytest

from workers.tasks.overlap import read_ahead, write_behind


def test_items_come_in_order_and_few_are_ahead():
    made, ahead = [], []

    def produce():
        for i in range(20):
            made.append(i)
            yield i

    for i in read_ahead(produce(), depth=3):
        time.sleep(0.001)
        ahead.append(len(made) - i)
        assert threading.current_thread() is threading.main_thread()
    assert made == list(range(20))
    assert max(ahead) <= 4


def test_an_error_while_reading_reaches_the_reader():
    def produce():
        yield 1
        raise OSError("torn page")

    found = []
    with pytest.raises(OSError, match="torn page"):
        found.extend(read_ahead(produce()))


def test_everything_is_written_in_order():
    written = []
    write_behind(range(50), written.append)
    assert written == list(range(50))


def test_an_error_while_writing_stops_the_computation():
    made = []

    def compute():
        for i in range(1_000):
            made.append(i)
            yield i

    def write(item):
        if item == 3:
            raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        write_behind(compute(), write)
    assert len(made) < 10
