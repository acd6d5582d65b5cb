"""The k-th smallest of numbers that do not fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]

# Numbers that are sorted at once.
MOST_SORTED = 2**20
DIGIT_BITS = 16
WORD_BITS = 64


def kth_smallest(chunks: Callable[[], Iterable[Words]], k: int) -> np.uint64:
    """The number at place ``k`` of all in order, counted from 0.

    The leading digits of the number are found one at a time by counting, until few enough
    numbers begin with them to be sorted.

    Args:
        chunks: Gives all numbers, in pieces; asked several times.
        k: Less than how many there are.
    """
    leading, known = 0, 0
    while known < WORD_BITS:
        counts = np.zeros(2**DIGIT_BITS, dtype=np.int64)
        for chunk in chunks():
            digits = _beginning_with(chunk, leading, known) << np.uint64(known)
            digits >>= np.uint64(WORD_BITS - DIGIT_BITS)
            counts += np.bincount(digits.astype(np.int64), minlength=len(counts))
        before = np.cumsum(counts) - counts
        digit = int(np.searchsorted(before, k, side="right")) - 1
        k -= int(before[digit])
        leading, known = (leading << DIGIT_BITS) | digit, known + DIGIT_BITS
        if counts[digit] <= MOST_SORTED:
            found = np.concatenate([_beginning_with(c, leading, known) for c in chunks()])
            return np.uint64(np.partition(found, k)[k])
    return np.uint64(leading)


def _beginning_with(values: Words, leading: int, known: int) -> Words:
    """Those whose first ``known`` bits are ``leading``."""
    if not known:
        return values
    return values[values >> np.uint64(WORD_BITS - known) == np.uint64(leading)]
