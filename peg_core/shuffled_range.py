"""The numbers from 0 in a random order, of which any part can be had without the rest."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from peg_core.random_streams import mixed_bits

Words = npt.NDArray[np.uint64]

ROUNDS = 8


class ShuffledRange:
    """A permutation of ``range(count)`` that takes no memory.

    A Feistel network permutes the numbers of an even count of bits; what comes out too
    large is put in again until it is not (at most three of four numbers are too large).

    Args:
        count: How many numbers.
        seed: Another seed, another order.
    """

    def __init__(self, count: int, *, seed: int) -> None:
        self.count = count
        half = max(1, ((count - 1).bit_length() + 1) // 2)
        self._half, self._mask = np.uint64(half), np.uint64(2**half - 1)
        state = np.random.SeedSequence(seed).generate_state(ROUNDS, np.uint64)
        self._keys = [np.uint64(key) for key in state]

    def take(self, start: int, stop: int) -> npt.NDArray[np.int64]:
        """What stands at the indices ``start`` to ``stop``, [stop - start]."""
        values = self._permuted(np.arange(start, stop, dtype=np.uint64))
        large = np.flatnonzero(values >= self.count)
        while len(large):
            values[large] = self._permuted(values[large])
            large = large[values[large] >= self.count]
        return values.astype(np.int64)

    def _permuted(self, values: Words) -> Words:
        left, right = values >> self._half, values & self._mask
        for key in self._keys:
            left, right = right, left ^ (mixed_bits(right ^ key) & self._mask)
        return (left << self._half) | right
