"""The k-th smallest of keys that do not fit into memory.

A key is one or more words; the first counts most. The leading digits of the key that is looked
for are found one at a time by counting, until few enough keys begin with them to be sorted.
Counts of several pieces are added up, so pieces may be counted by several tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
# Words of some keys, the one that counts most first, each [num_keys].
Keys = Sequence[Words]
# The words of one key.
Key = tuple[int, ...]
Counts = npt.NDArray[np.int64]

# Keys that are sorted at once.
MOST_SORTED = 2**20
DIGIT_BITS = 16
WORD_BITS = 64
DIGITS = WORD_BITS // DIGIT_BITS


@dataclass(frozen=True)
class DigitSearch:
    """How far the search for one key has come.

    Args:
        rank: Place of the key among those that begin with ``digits``, counted from 0.
        words: Of a key.
        digits: The digits that are known.
        left: Keys that begin with them; None where nobody has counted.
    """

    rank: int
    words: int = 1
    digits: tuple[int, ...] = ()
    left: int | None = None

    @property
    def is_narrow(self) -> bool:
        """Whether the keys that are left can be sorted, or are all the same."""
        few = self.left is not None and self.left <= MOST_SORTED
        return few or len(self.digits) == self.words * DIGITS

    def count_next(self, keys: Keys) -> Counts:
        """How many of the keys that are left have which next digit, [2**DIGIT_BITS]."""
        word, place = divmod(len(self.digits), DIGITS)
        shift = np.uint64(WORD_BITS - DIGIT_BITS * (place + 1))
        digits = (self.beginning_alike(keys)[word] >> shift) & np.uint64(2**DIGIT_BITS - 1)
        return np.bincount(digits.astype(np.int64), minlength=2**DIGIT_BITS)

    def narrowed(self, counts: Counts) -> DigitSearch:
        """One digit more is known, by the counts over all keys."""
        before = np.cumsum(counts) - counts
        digit = int(np.searchsorted(before, self.rank, side="right")) - 1
        rank = self.rank - int(before[digit])
        return DigitSearch(rank, self.words, (*self.digits, digit), int(counts[digit]))

    def beginning_alike(self, keys: Keys) -> list[Words]:
        """Those that begin with the digits that are known."""
        if not self.digits:
            return list(keys)
        alike: Any = True
        for number, word in enumerate(keys):
            known = self.digits[number * DIGITS : (number + 1) * DIGITS]
            if known:
                shift = np.uint64(WORD_BITS - DIGIT_BITS * len(known))
                alike = (word >> shift == np.uint64(_number(known))) & alike
        return [word[alike] for word in keys]

    def pick(self, keys: Keys) -> Key:
        """The key, of all that are left in any order."""
        if len(self.digits) == self.words * DIGITS:
            firsts = range(0, len(self.digits), DIGITS)
            return tuple(_number(self.digits[first : first + DIGITS]) for first in firsts)
        chosen = np.lexsort(keys[::-1])[self.rank]
        return tuple(int(word[chosen]) for word in keys)


def kth_smallest(chunks: Callable[[], Iterable[Keys]], k: int, *, words: int = 1) -> Key:
    """The key at index ``k`` of all in order, counted from 0, a tuple of its words.

    Args:
        chunks: Gives all keys, in pieces; asked several times.
        k: Less than how many there are.
        words: Of a key.
    """
    search = DigitSearch(k, words)
    while not search.is_narrow:
        counts = np.zeros(2**DIGIT_BITS, dtype=np.int64)
        for keys in chunks():
            counts += search.count_next(keys)
        search = search.narrowed(counts)
    return search.pick(join_keys([search.beginning_alike(keys) for keys in chunks()]))


def join_keys(pieces: Iterable[Keys]) -> list[Words]:
    """The keys of all pieces together."""
    return [np.concatenate(words) for words in zip(*pieces, strict=True)]


def _number(digits: tuple[int, ...]) -> int:
    number = 0
    for digit in digits:
        number = (number << DIGIT_BITS) | digit
    return number
