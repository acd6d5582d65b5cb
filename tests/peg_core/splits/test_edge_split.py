import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from peg_core.errors import GraphTooSmall
from peg_core.splits.edge_split import (
    TEST,
    TRAIN,
    VALID,
    assign_folds,
    split_by_time,
    split_randomly,
)


def pairs(count, seed=0):
    rng = np.random.default_rng(seed)
    keys = rng.choice(10**6, size=count, replace=False)
    return keys // 1000, 1000 + keys % 1000


def test_shares_are_exact():
    parts = split_randomly(*pairs(1000), valid=0.05, test=0.10, seed=0)
    assert np.bincount(parts).tolist() == [850, 50, 100]


@given(st.integers(0, 10**6))
def test_an_edges_part_does_not_depend_on_order_or_direction(seed):
    source, target = pairs(200)
    order = np.random.default_rng(seed).permutation(200)
    first = split_randomly(source, target, valid=0.1, test=0.2, seed=seed)
    again = split_randomly(target[order], source[order], valid=0.1, test=0.2, seed=seed)
    np.testing.assert_array_equal(first[order], again)


def test_another_seed_gives_another_split():
    one, two = (split_randomly(*pairs(500), valid=0.1, test=0.1, seed=s) for s in (0, 1))
    assert (one != two).any()


def test_parts_are_spread_evenly_over_the_ids():
    source, target = pairs(20_000)
    parts = split_randomly(source, target, valid=0.25, test=0.25, seed=3)
    for bit in range(10):
        share = (parts[(source >> bit) & 1 == 1] == TEST).mean()
        assert share == pytest.approx(0.25, abs=0.02)


def test_the_newest_edges_are_tested_and_those_before_validate():
    source, target = pairs(100)
    time = np.random.default_rng(1).permutation(100)
    parts = split_by_time(source, target, time, valid=0.1, test=0.2, seed=0)
    np.testing.assert_array_equal(parts == TEST, time >= 80)
    np.testing.assert_array_equal(parts == VALID, (time >= 70) & (time < 80))
    np.testing.assert_array_equal(parts == TRAIN, time < 70)


def test_a_share_without_an_edge_is_refused():
    with pytest.raises(GraphTooSmall, match=r"a valid share of 0\.01 of 10 edges leaves no edge"):
        split_randomly(*pairs(10), valid=0.01, test=0.5, seed=0)


def test_folds_are_balanced_and_disjoint():
    fold = assign_folds(*pairs(103), folds=10, seed=0)
    assert sorted(np.bincount(fold).tolist()) == [10] * 7 + [11] * 3
