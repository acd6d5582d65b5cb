"""From an id to its index: a direct table for dense integers, a hash table for the rest.

The tables are plain arrays, built once, written beside the ids and memory-mapped
by every task; a look-up neither sorts nor builds anything.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# A direct table may be this many times larger than the ids it holds.
DENSE_FACTOR = 4
# Slots per id, at least: longer probe sequences cost more than memory.
SLOTS_PER_ID = 1.6


def dense_span(count: int, smallest: int, largest: int) -> int | None:
    """Length of a direct table for these integers, or None where it would be too large."""
    span = largest - smallest + 1
    return span if count and span <= DENSE_FACTOR * count else None


def num_slots(count: int) -> int:
    """Slots of a hash table of so many ids: a power of two."""
    return 1 << max(4, int(np.ceil(np.log2(max(count, 1) * SLOTS_PER_ID))))


@numba.njit(cache=True, inline="always")
def mix(key: Any) -> Any:
    """The finaliser of splitmix64."""
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


@numba.njit(cache=True)
def mix_all(keys: Array) -> npt.NDArray[np.uint64]:
    """:func:`mix` of every key."""
    out = np.empty(len(keys), dtype=np.uint64)
    for i in range(len(keys)):
        out[i] = mix(keys[i] + np.uint64(0x9E3779B97F4A7C15))
    return out


@numba.njit(cache=True)
def fill_dense(table: Array, values: Array, smallest: Any, first: int) -> None:
    """``table[id - smallest id]`` is the index of the id, ``first`` of the first of these."""
    for index in range(len(values)):
        table[values[index] - smallest] = first + index


@numba.njit(cache=True)
def fill_slots(slots: Array, keys: Array, first: int) -> None:
    """Add (key, index + 1) to an open-addressing table, [num_slots, 2]; equal keys are all kept."""
    mask = np.uint64(len(slots) - 1)
    for index in range(len(keys)):
        slot = mix(keys[index]) & mask
        while slots[slot, 1]:
            slot = (slot + np.uint64(1)) & mask
        slots[slot, 0] = keys[index]
        slots[slot, 1] = first + index + 1


@numba.njit(cache=True, parallel=True)
def lookup_dense(table: Array, smallest: Any, wanted: Array) -> npt.NDArray[np.int64]:
    """Places of 64-bit integers in a direct table, -1 for unknown ones."""
    out = np.empty(len(wanted), dtype=np.int64)
    for i in numba.prange(len(wanted)):
        # below the smallest the difference wraps to a huge number: one comparison does
        offset = np.uint64(wanted[i]) - np.uint64(smallest)
        out[i] = table[offset] if offset < np.uint64(len(table)) else -1
    return out


@numba.njit(cache=True, parallel=True)
def lookup_integers(slots: Array, wanted: Array) -> npt.NDArray[np.int64]:
    """Places of 64-bit integers in a hash table, -1 for unknown ones."""
    out = np.empty(len(wanted), dtype=np.int64)
    mask = np.uint64(len(slots) - 1)
    for i in numba.prange(len(wanted)):
        key = np.uint64(wanted[i])
        slot = mix(key) & mask
        out[i] = -1
        while slots[slot, 1]:
            if slots[slot, 0] == key:
                out[i] = np.int64(slots[slot, 1]) - 1
                break
            slot = (slot + np.uint64(1)) & mask
    return out


@numba.njit(cache=True, parallel=True)
def hash_bytes(offsets: Array, data: Array) -> npt.NDArray[np.uint64]:
    """64 bits per string of an Arrow buffer pair, [len(offsets) - 1]."""
    out = np.empty(len(offsets) - 1, dtype=np.uint64)
    for i in numba.prange(len(out)):
        state = np.uint64(0x9E3779B97F4A7C15)
        word = np.uint64(0)
        shift = np.uint64(0)
        for byte in range(offsets[i], offsets[i + 1]):
            word |= np.uint64(data[byte]) << shift
            shift += np.uint64(8)
            if shift == np.uint64(64):
                state = mix(state ^ word)
                word, shift = np.uint64(0), np.uint64(0)
        length = np.uint64(offsets[i + 1] - offsets[i])
        out[i] = mix(mix(state ^ word) + length)
    return out


@numba.njit(cache=True, parallel=True)
def lookup_strings(
    slots: Array, offsets: Array, data: Array, wanted_offsets: Array, wanted_data: Array,
    hashes: Array,
) -> npt.NDArray[np.int64]:  # fmt: skip
    """Places of strings, -1 for unknown ones; equal hashes are told apart by their bytes."""
    out = np.empty(len(hashes), dtype=np.int64)
    mask = np.uint64(len(slots) - 1)
    for i in numba.prange(len(hashes)):
        slot = mix(hashes[i]) & mask
        out[i] = -1
        start, stop = wanted_offsets[i], wanted_offsets[i + 1]
        while slots[slot, 1]:
            if slots[slot, 0] == hashes[i]:
                index = np.int64(slots[slot, 1]) - 1
                first = offsets[index]
                same = offsets[index + 1] - first == stop - start
                k = 0
                while same and k < stop - start:
                    same = data[first + k] == wanted_data[start + k]
                    k += 1
                if same:
                    out[i] = index
                    break
            slot = (slot + np.uint64(1)) & mask
    return out
