"""The contract of every generator."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from peg_core.errors import ConfigError
from peg_core.generators.edge_generator import CHUNK_ROWS
from peg_core.generators.random_graphs import (
    GENERATORS,
    DegreeCorrectedBlockModel,
    Grid,
    RecursiveMatrix,
    StochasticBlockModel,
)

ROWS = CHUNK_ROWS + 1000
EXAMPLES = {
    "sbm": StochasticBlockModel(10_007, ROWS),
    "dcsbm": DegreeCorrectedBlockModel(10_007, ROWS),
    "rmat": RecursiveMatrix(10_007, ROWS),
    "grid": Grid(600_000, rewired_share=0.1),
}


def all_rows(generator, seed=0):
    return np.concatenate(list(generator.chunks(seed=seed)), axis=1)  # [2, rows]


def test_every_generator_has_an_example():
    assert EXAMPLES.keys() == GENERATORS.keys()
    for name, generator in EXAMPLES.items():
        assert type(generator) is GENERATORS[name]


@pytest.mark.parametrize("name", GENERATORS)
def test_rows_are_as_many_as_asked_within_the_nodes_and_no_self_loops(name):
    generator = EXAMPLES[name]
    source, target = all_rows(generator)
    assert len(source) == len(target) == generator.num_rows
    assert source.dtype == target.dtype == np.int64
    for end in (source, target):
        assert end.min() >= 0
        assert end.max() < generator.nodes
    assert not np.any(source == target)


@pytest.mark.parametrize("name", GENERATORS)
def test_rows_do_not_depend_on_the_number_of_threads(name):
    threads = numba.get_num_threads()
    many = all_rows(EXAMPLES[name], seed=5)
    try:
        numba.set_num_threads(1)
        one = all_rows(EXAMPLES[name], seed=5)
    finally:
        numba.set_num_threads(threads)
    np.testing.assert_array_equal(many, one)


@pytest.mark.parametrize("name", GENERATORS)
def test_a_chunk_stands_alone(name):
    chunks = list(EXAMPLES[name].chunks(seed=3))
    assert [len(chunk.source) for chunk in chunks[:-1]] == [CHUNK_ROWS] * (len(chunks) - 1)
    np.testing.assert_array_equal(chunks[1], EXAMPLES[name].chunk(1, seed=3))


@pytest.mark.parametrize("name", GENERATORS)
def test_another_seed_draws_other_rows(name):
    first, second = all_rows(EXAMPLES[name], seed=1), all_rows(EXAMPLES[name], seed=2)
    assert np.mean(first[1] != second[1]) > 0.05


def test_negative_seed_is_refused():
    with pytest.raises(ConfigError, match="the seed is -1, needed is 0 or more"):
        next(Grid(10).chunks(seed=-1))
