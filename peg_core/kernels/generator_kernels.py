"""Compiled loops of the random graphs.

Row r of a chunk draws its n-th number as a hash of (key, r, n), splitmix64. Everything hashed
stays uint64: numba turns a mix of int64 and uint64 into a float. All loops stand in one file,
because numba's cache does not notice changes in the other files that a loop calls.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]
UInt64Array = npt.NDArray[np.uint64]
Float64Array = npt.NDArray[np.float64]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@numba.njit(cache=True)
def _mix(value: np.uint64) -> np.uint64:
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@numba.njit(cache=True)
def _uniform(state: np.uint64) -> float:
    """A float64 in [0, 1)."""
    return np.int64(_mix(state) >> np.uint64(11)) * 2.0**-53


@numba.njit(cache=True)
def _bit_width(size: int) -> np.uint64:
    width = np.uint64(1)
    while (np.uint64(1) << width) < np.uint64(size):
        width += np.uint64(1)
    return width


@numba.njit(cache=True)
def _permute(value: int, size: int, width: np.uint64, rounds: UInt64Array) -> np.int64:
    """Every step is one-to-one on ``width`` bits; walk on until back below ``size``."""
    mask = (np.uint64(1) << width) - np.uint64(1)
    shift = (width + np.uint64(1)) >> np.uint64(1)
    image = np.uint64(value)
    while True:
        for turn in range(len(rounds)):
            image = (image * rounds[turn, 0] + rounds[turn, 1]) & mask
            image ^= image >> shift
        if image < np.uint64(size):
            return np.int64(image)


@numba.njit(cache=True, parallel=True, nogil=True)
def permute_all(values: Int64Array, size: int, rounds: UInt64Array) -> Int64Array:
    images = np.empty(len(values), np.int64)
    width = _bit_width(size)
    for i in numba.prange(len(values)):
        images[i] = _permute(values[i], size, width, rounds)
    return images


@numba.njit(cache=True)
def _block_member(
    block: int, uniform: float, nodes: int, blocks: int, spans: Float64Array, power: float
) -> np.int64:
    """The node of ``block`` at ``uniform`` of its cumulated expected degrees."""
    larger = np.int64(block < nodes % blocks)
    size = nodes // blocks + larger
    reach = 1.0 + uniform * spans[larger]
    if power != 1.0:
        reach = reach**power
    return np.int64(block + blocks * (min(np.int64(reach), size) - 1))


@numba.njit(cache=True, parallel=True, nogil=True)
def draw_block_edges(
    key: np.uint64,
    nodes: int,
    blocks: int,
    inside_share: float,
    spans: Float64Array,
    power: float,
    rounds: UInt64Array,
    source: Int64Array,
    target: Int64Array,
) -> None:
    """Fill ``source`` and ``target``, [rows] each, with edges of a block model.

    Before scrambling, node i is in block ``i % blocks``. The first r nodes of a block are drawn
    with probability ``((r + 1) ** (1 / power) - 1) / span``; ``spans``, [2], has that of the
    smaller and that of the larger blocks.
    """
    width = _bit_width(nodes)
    for row in numba.prange(len(source)):
        state = _mix(key + np.uint64(row) * GOLDEN)
        block = np.int64(_uniform(state) * nodes) % blocks
        inside = _uniform(state + GOLDEN) < inside_share
        first = _block_member(
            block, _uniform(state + np.uint64(2) * GOLDEN), nodes, blocks, spans, power
        )
        state += np.uint64(3) * GOLDEN
        other = block
        while not inside and other == block:
            other = np.int64(_uniform(state) * nodes) % blocks
            state += GOLDEN
        second = first
        while second == first:
            second = _block_member(other, _uniform(state), nodes, blocks, spans, power)
            state += GOLDEN
        source[row] = _permute(first, nodes, width, rounds)
        target[row] = _permute(second, nodes, width, rounds)


@numba.njit(cache=True, parallel=True, nogil=True)
def draw_rmat_edges(
    key: np.uint64,
    nodes: int,
    bounds: UInt64Array,
    rounds: UInt64Array,
    source: Int64Array,
    target: Int64Array,
) -> None:
    """Fill ``source`` and ``target``, [rows] each, with edges of a recursive matrix.

    ``bounds``, [3], are the cumulated probabilities a, a + b and a + b + c, times 2 ** 32.
    """
    width = _bit_width(nodes)
    low_half = np.uint64(0xFFFFFFFF)
    for row in numba.prange(len(source)):
        state = _mix(key + np.uint64(row) * GOLDEN)
        first, second = np.int64(0), np.int64(0)
        while first == second or first >= nodes or second >= nodes:
            first, second = np.int64(0), np.int64(0)
            for level in range(width):
                if level % 2 == 0:  # one hash serves two levels
                    bits = _mix(state)
                    state += GOLDEN
                part = bits & low_half
                bits >>= np.uint64(32)
                low_source = part < bounds[1]
                low_target = part < bounds[0] or (not low_source and part < bounds[2])
                first = 2 * first + np.int64(not low_source)
                second = 2 * second + np.int64(not low_target)
        source[row] = _permute(first, nodes, width, rounds)
        target[row] = _permute(second, nodes, width, rounds)
