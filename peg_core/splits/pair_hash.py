"""A number per pair that depends on the pair and a seed alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.random_streams import mixed_bits, stream_seed

IntArray = npt.NDArray[np.integer[Any]]


def pair_hash(
    source: IntArray, target: IntArray, *, seed: int, purpose: str
) -> npt.NDArray[np.uint64]:
    """64 well-mixed bits for each undirected pair, [num_pairs].

    A pair keeps its number when others come or go, whichever task asks.
    """
    key = np.uint64(stream_seed(seed=seed, purpose=purpose))
    low = np.minimum(source, target).astype(np.uint64)
    high = np.maximum(source, target).astype(np.uint64)
    return _mix(_mix(low + key) ^ (high * np.uint64(0x9E3779B97F4A7C15)))


def _mix(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """One step of splitmix64."""
    return mixed_bits(x + np.uint64(0x9E3779B97F4A7C15))
