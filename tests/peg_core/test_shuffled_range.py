import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from peg_core.shuffled_range import ShuffledRange

COUNTS = st.one_of(st.integers(1, 70), st.integers(1, 5000))


@given(count=COUNTS, seed=st.integers(0, 2**63 - 1))
def test_every_number_comes_once(count, seed):
    order = ShuffledRange(count, seed=seed).take(0, count)
    np.testing.assert_array_equal(np.sort(order), np.arange(count))


@given(count=COUNTS, seed=st.integers(0, 2**63 - 1), data=st.data())
def test_a_part_is_the_same_without_the_rest(count, seed, data):
    start = data.draw(st.integers(0, count))
    stop = data.draw(st.integers(start, count))
    whole = ShuffledRange(count, seed=seed).take(0, count)
    np.testing.assert_array_equal(
        ShuffledRange(count, seed=seed).take(start, stop), whole[start:stop]
    )


def test_every_number_comes_first_equally_often():
    for count in (5, 24):
        first = [int(ShuffledRange(count, seed=seed).take(0, 1)[0]) for seed in range(6000)]
        assert chisquare(np.bincount(first, minlength=count)).pvalue > 1e-4


def test_what_comes_next_does_not_depend_on_what_came():
    """The step from one number to the next takes every size equally often."""
    count = 1009
    steps = np.concatenate(
        [np.diff(ShuffledRange(count, seed=seed).take(0, count)) % count for seed in range(60)]
    )
    assert chisquare(np.bincount(steps, minlength=count)[1:]).pvalue > 1e-4


def test_a_range_larger_than_memory_can_be_entered_anywhere():
    order = ShuffledRange(10**15, seed=3)
    numbers = order.take(10**14, 10**14 + 1000)
    assert len(set(numbers.tolist())) == 1000
    assert numbers.min() >= 0
    assert numbers.max() < 10**15
    assert abs(numbers.mean() / 10**15 - 0.5) < 0.05
