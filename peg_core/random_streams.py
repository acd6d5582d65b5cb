"""Random streams named by what they are for, never by the worker that draws them."""

from __future__ import annotations

import hashlib

import numba
import numpy as np
import numpy.typing as npt


def random_stream(*, seed: int, purpose: str, shard: int = 0) -> np.random.Generator:
    """A generator that depends on (seed, purpose, shard) alone."""
    return np.random.Generator(np.random.PCG64(_entropy(seed, purpose, shard)))


def stream_seed(*, seed: int, purpose: str, shard: int = 0) -> int:
    """A 63-bit seed for generators outside numpy (torch, numba)."""
    state = np.random.SeedSequence(_entropy(seed, purpose, shard)).generate_state(1, np.uint64)
    return int(state[0] >> np.uint64(1))


@numba.njit(cache=True, nogil=True)
def mixed_bits(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser of splitmix64: every bit of a result depends on every bit of its number.

    Of an array, or within a kernel of one number.
    """
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _entropy(seed: int, purpose: str, shard: int) -> list[int]:
    name = int.from_bytes(hashlib.blake2b(purpose.encode(), digest_size=8).digest(), "little")
    return [seed, name, shard]
