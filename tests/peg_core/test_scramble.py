"""The scramble is a permutation."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from peg_core.scramble import Scramble


@given(size=st.integers(1, 5000), seed=st.integers(0, 2**40))
def test_scramble_is_a_permutation_for_every_size(size, seed):
    found = Scramble.of(size, seed=seed, purpose="test").apply(np.arange(size))
    np.testing.assert_array_equal(np.sort(found), np.arange(size))
