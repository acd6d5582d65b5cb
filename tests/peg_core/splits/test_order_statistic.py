import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from peg_core.splits import order_statistic
from peg_core.splits.order_statistic import kth_smallest

NUMBERS = st.one_of(
    st.integers(0, 2**64 - 1),  # anywhere
    st.integers(2**63, 2**63 + 3),  # many alike
    st.integers(10**9, 10**9 + 10**5),  # all begin alike
)


@given(st.data(), st.integers(1, 3), st.integers(1, 7), st.sampled_from([1, 5, 100]))
def test_every_place_is_that_of_sorting(data, words, size, most_sorted):
    """Of keys of several words, of which the first counts most."""
    numbers = data.draw(st.lists(st.tuples(*[NUMBERS] * words), min_size=1, max_size=40))
    values = np.array(numbers, dtype=np.uint64)

    def chunks():
        return (list(values[i : i + size].T) for i in range(0, len(values), size))

    before, order_statistic.MOST_SORTED = order_statistic.MOST_SORTED, most_sorted
    try:
        found = [kth_smallest(chunks, k, words=words) for k in range(len(values))]
    finally:
        order_statistic.MOST_SORTED = before
    assert found == sorted(numbers)
