import numpy as np
import pytest

from peg_core.metrics.bootstrap import Bootstrap
from peg_core.metrics.direction import DirectionCounts


def test_the_share_that_is_right_counts_ties_half_and_leaves_out_links_both_ways():
    counts = DirectionCounts()
    counts.add(np.array([3.0, 1.0, 2.0]), np.array([1.0, 2.0, 2.0]))
    counts.add(np.array([5.0, 6.0]), np.array([4.0, np.nan]))
    found = counts.metrics(Bootstrap(), seed=0)["direction_accuracy"]
    assert found.value == pytest.approx((2 + 0.5) / 4)


def test_the_interval_is_that_of_a_binomial():
    rng = np.random.default_rng(0)
    counts = DirectionCounts()
    counts.add(rng.random(2_000) < 0.9, np.full(2_000, 0.5))
    found = counts.metrics(Bootstrap(4_000), seed=0)["direction_accuracy"]
    half = 1.96 * np.sqrt(found.value * (1 - found.value) / 2_000)
    assert found.low == pytest.approx(found.value - half, abs=half / 5)
    assert found.high == pytest.approx(found.value + half, abs=half / 5)


def test_scores_without_direction_are_right_half_of_the_time():
    counts = DirectionCounts()
    counts.add(np.ones(7), np.ones(7))
    found = counts.metrics(Bootstrap(), seed=0)["direction_accuracy"]
    assert (found.value, found.low, found.high) == (0.5, 0.5, 0.5)


def test_without_links_nothing_is_said():
    assert DirectionCounts().metrics(Bootstrap(), seed=0) == {}
