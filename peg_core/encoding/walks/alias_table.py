"""Draws from a fixed distribution in constant time."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import FloatArray

FULL = 2**32 - 1


def alias_table(weights: FloatArray) -> npt.NDArray[np.uint32]:
    """Walker's alias table (Vose's construction).

    Args:
        weights: Not negative, at least one positive, [count], fewer than 2**32.

    Returns:
        For every index the share of 2**32 that stays, and who has the rest, [count, 2].
    """
    scaled = np.asarray(weights, dtype=np.float64)
    return _fill(scaled * (len(scaled) / scaled.sum()))


@numba.njit(cache=True)
def _fill(scaled: FloatArray) -> Any:
    count = len(scaled)
    table = np.empty((count, 2), dtype=np.uint32)
    waiting = np.empty(count, dtype=np.int64)  # small ones from the left, large from the right
    small, large = 0, count
    for i in range(count):
        if scaled[i] < 1.0:
            waiting[small] = i
            small += 1
        else:
            large -= 1
            waiting[large] = i
    while small > 0 and large < count:
        small -= 1
        low, high = waiting[small], waiting[large]
        table[low, 0] = np.uint32(scaled[low] * FULL)
        table[low, 1] = high
        scaled[high] -= 1.0 - scaled[low]
        if scaled[high] < 1.0:
            large += 1
            waiting[small] = high
            small += 1
    for i in range(small):  # what rounding left over has share 1
        table[waiting[i], 0], table[waiting[i], 1] = FULL, waiting[i]
    for i in range(large, count):
        table[waiting[i], 0], table[waiting[i], 1] = FULL, waiting[i]
    return table


@numba.njit(cache=True, nogil=True)
def draw(table: npt.NDArray[np.uint32], bits: np.uint64) -> np.int64:
    """An index, by 64 random bits: the upper half chooses it, the lower one whether it stays."""
    index = ((bits >> np.uint64(32)) * np.uint64(len(table))) >> np.uint64(32)
    stays = (bits & np.uint64(FULL)) < np.uint64(table[index, 0])
    return np.int64(index) if stays else np.int64(table[index, 1])
