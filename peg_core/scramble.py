"""A permutation of any number of things that needs no memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from peg_core.kernels.generator_kernels import Int64Array, UInt64Array, permute_all
from peg_core.random_streams import random_stream

SCRAMBLE_ROUNDS = 4


class Scramble(NamedTuple):
    """A keyed permutation of 0 .. size - 1 that needs no memory; no rounds: the identity."""

    size: int
    rounds: UInt64Array  # [rounds, 2]: odd factor, addend

    @classmethod
    def of(cls, size: int, *, seed: int, purpose: str) -> Scramble:
        stream = random_stream(seed=seed, purpose=purpose)
        rounds = stream.integers(0, 2**64, size=(SCRAMBLE_ROUNDS, 2), dtype=np.uint64)
        rounds[:, 0] |= np.uint64(1)
        return cls(size, rounds)

    @classmethod
    def identity(cls, size: int) -> Scramble:
        return cls(size, np.empty((0, 2), np.uint64))

    def apply(self, values: Int64Array) -> Int64Array:
        """Where the permutation takes ``values``, [len(values)]."""
        return permute_all(values, self.size, self.rounds)
