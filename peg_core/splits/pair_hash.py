"""A number per pair that depends on the pair and a seed alone."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from peg_core.random_streams import mixed_bits, stream_seed

IntArray = npt.NDArray[np.integer[Any]]
Words = npt.NDArray[np.uint64]
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def pair_hash(
    source: IntArray, target: IntArray, *, seed: int, purpose: str
) -> npt.NDArray[np.uint64]:
    """64 well-mixed bits for each undirected pair, [num_pairs].

    A pair keeps its number when others come or go, whichever task asks.
    """
    return _hash_pairs(
        np.asarray(source).astype(np.uint64),
        np.asarray(target).astype(np.uint64),
        hash_key(seed=seed, purpose=purpose),
    )


def hash_key(*, seed: int, purpose: str) -> np.uint64:
    """What makes the numbers of one purpose differ from those of another."""
    return np.uint64(stream_seed(seed=seed, purpose=purpose))


@numba.njit(cache=True, nogil=True)
def hash_one(first: Any, second: Any, key: Any) -> Any:
    """The number of one pair, within a kernel; all arguments have 64 bits and no sign."""
    low, high = min(first, second), max(first, second)
    return mixed_bits((mixed_bits(low + key + GOLDEN) ^ (high * GOLDEN)) + GOLDEN)


@numba.njit(cache=True, nogil=True)
def _hash_pairs(source: Words, target: Words, key: np.uint64) -> Words:
    hashes = np.empty(len(source), dtype=np.uint64)
    for pair in range(len(source)):
        hashes[pair] = hash_one(source[pair], target[pair], key)
    return hashes
