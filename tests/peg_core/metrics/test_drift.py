"""The population stability index against its definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from peg_core.metrics.drift import population_stability_index

histograms = st.lists(st.integers(0, 1_000), min_size=5, max_size=50)


def test_known_value():
    # ten bins of a tenth each are ten groups
    before, now = np.full(10, 100), np.array([50, 150] + [100] * 8)
    expected = (0.05 - 0.1) * np.log(0.05 / 0.1) + (0.15 - 0.1) * np.log(0.15 / 0.1)
    assert population_stability_index(before, now) == pytest.approx(expected)


def test_bins_are_joined_to_groups_of_the_expected_scores():
    before, now = np.array([40, 10, 0, 50]), np.array([10, 30, 20, 40])
    # two groups: the first bins hold 50 of 100, what follows the rest
    expected = (0.4 - 0.5) * np.log(0.4 / 0.5) + (0.6 - 0.5) * np.log(0.6 / 0.5)
    assert population_stability_index(before, now, groups=2) == pytest.approx(expected)


def test_an_empty_group_is_finite_and_no_scores_are_no_number():
    assert 1 < population_stability_index([100, 0], [0, 100]) < 20
    assert np.isnan(population_stability_index([0, 0], [1, 2]))


@given(st.lists(st.integers(1, 1_000), min_size=5, max_size=50))
def test_equal_shares_do_not_differ(counts):
    more = 3 * np.array(counts)
    assert population_stability_index(counts, more) == pytest.approx(0, abs=1e-12)


@given(histograms, st.data())
def test_it_is_never_negative(before, data):
    now = data.draw(st.lists(st.integers(0, 1_000), min_size=len(before), max_size=len(before)))
    if sum(before) and sum(now):
        assert population_stability_index(before, now) >= -1e-12


def test_other_bins_are_refused():
    with pytest.raises(ValueError, match="needed are equal"):
        population_stability_index([1, 2], [1, 2, 3])
