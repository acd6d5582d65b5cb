"""From an id to its index: a direct table for dense integers, a hash table for the rest.

The tables are plain arrays, built once, written beside the ids and memory-mapped
by every task; a look-up neither sorts nor builds anything.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from peg_core.kernels.intrinsics import prefetch_row

Array = npt.NDArray[Any]

# A direct table may be this many times larger than the ids it holds.
DENSE_FACTOR = 4
# Slots per id, at least: longer probe sequences cost more than memory.
SLOTS_PER_ID = 1.6
# Strings that are looked up together, so that the processor waits for all of them at once.
BLOCK = 64


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


@numba.njit(cache=True, inline="always")
def _word(data: Any, start: Any) -> Any:
    """Eight bytes as a number, the first one lowest; compiled to one load."""
    word = np.uint64(0)
    for k in range(8):
        word |= np.uint64(data[start + np.uint64(k)]) << np.uint64(8 * k)
    return word


@numba.njit(cache=True, inline="always")
def _last_word(data: Any, start: Any, length: Any) -> Any:
    """The same of fewer than eight bytes, filled up with zeros."""
    word = np.uint64(0)
    for k in range(np.int64(length)):
        word |= np.uint64(data[start + np.uint64(k)]) << np.uint64(8 * k)
    return word


@numba.njit(cache=True, parallel=True)
def hash_bytes(offsets: Array, data: Array) -> npt.NDArray[np.uint64]:
    """64 bits per string of an Arrow buffer pair, [len(offsets) - 1]."""
    out = np.empty(len(offsets) - 1, dtype=np.uint64)
    for i in numba.prange(len(out)):
        state = np.uint64(0x9E3779B97F4A7C15)
        at = np.uint64(offsets[i])
        length = np.uint64(offsets[i + 1]) - at
        for _ in range(np.int64(length >> np.uint64(3))):
            state = mix(state ^ _word(data, at))
            at += np.uint64(8)
        rest = _last_word(data, at, length & np.uint64(7))
        out[i] = mix(mix(state ^ rest) + length)
    return out


@numba.njit(cache=True, inline="always")
def _same_bytes(data: Any, start: Any, others: Any, other: Any, length: Any) -> Any:
    for k in range(np.int64(length >> np.uint64(3))):
        offset = np.uint64(8 * k)
        if _word(data, start + offset) != _word(others, other + offset):
            return False
    tail, rest = length & ~np.uint64(7), length & np.uint64(7)
    return _last_word(data, start + tail, rest) == _last_word(others, other + tail, rest)


@numba.njit(cache=True, inline="always")
def _find_hash(slots: Any, slot: Any, mask: Any, key: Any) -> Any:
    """The next slot with this hash, or an empty one."""
    while slots[slot, 1] and slots[slot, 0] != key:
        slot = (slot + np.uint64(1)) & mask
    return slot


@numba.njit(cache=True, parallel=True)
def lookup_strings(
    slots: Array, offsets: Array, data: Array, wanted_offsets: Array, wanted_data: Array,
    hashes: Array,
) -> npt.NDArray[np.int64]:  # fmt: skip
    """Places of strings, -1 for unknown ones; equal hashes are told apart by their bytes.

    A look-up reads a slot, then two offsets, then bytes, each somewhere in memory. Every step is
    taken for a block of strings while what the next one reads is on its way.
    """
    out = np.empty(len(hashes), dtype=np.int64)
    mask = np.uint64(len(slots) - 1)
    for block in numba.prange(-(-len(hashes) // BLOCK)):
        first, stop = block * BLOCK, min((block + 1) * BLOCK, len(hashes))
        for i in range(first, stop):
            out[i] = np.int64(mix(hashes[i]) & mask)
            prefetch_row(slots, out[i])
        for i in range(first, stop):
            slot = _find_hash(slots, np.uint64(out[i]), mask, hashes[i])
            out[i] = np.int64(slot)
            prefetch_row(offsets, np.int64(slots[slot, 1]) - 1)
        for i in range(first, stop):
            index = np.int64(slots[out[i], 1]) - 1
            if index >= 0:
                prefetch_row(data, offsets[index])
        for i in range(first, stop):
            slot = np.uint64(out[i])
            start = np.uint64(wanted_offsets[i])
            length = np.uint64(wanted_offsets[i + 1]) - start
            out[i] = -1
            while slots[slot, 1]:
                index = np.int64(slots[slot, 1]) - 1
                known = np.uint64(offsets[index])
                same_length = np.uint64(offsets[index + 1]) - known == length
                if same_length and _same_bytes(data, known, wanted_data, start, length):
                    out[i] = index
                    break
                slot = _find_hash(slots, (slot + np.uint64(1)) & mask, mask, hashes[i])
    return out
