"""What the tasks of a split leave to each other; removed when the split is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.atomic_file import write_array
from peg_core.splits.order_statistic import Counts, DigitSearch, Key, Keys, Words, join_keys
from peg_core.splits.split_store import LinksByFold
from peg_core.storage.shared_array import create_array, read_rows, write_rows

IntArray = npt.NDArray[np.integer[Any]]
Folds = npt.NDArray[np.uint8]
# Where the rows of a file begin and end that belong to one other task.
Rows = tuple[int, int]


@dataclass(frozen=True)
class SplitWork:
    """Files between tasks: those of a range of entries, those of a range of hashes.

    An edge's hash goes from the range of entries that it stands in to its range of hashes,
    sorted by the latter, and its fold comes back in the same order.
    """

    folder: Path

    @classmethod
    def open(cls, folder: Path) -> SplitWork:
        return cls(folder)

    @property
    def hashes(self) -> Path:
        """The folder of the hashes, which nobody needs once the folds are there."""
        return self.folder / "hashes"

    def write_node_keys(self, keys: Words) -> None:
        write_array(self.folder / "node_keys.npy", keys)

    def node_keys(self) -> Words:
        """What a node is known by, memory-mapped, [num_nodes]."""
        keys: Words = np.load(self.folder / "node_keys.npy", mmap_mode="r")
        return keys

    def write_counts(self, turn: int, number: int, counts: Counts) -> None:
        """The digits of a range of entries, [searches, digits]."""
        write_array(self._range("counts", number, f"turn-{turn}"), counts)

    def counts(self, turn: int, ranges: int) -> Counts:
        """Those of all ranges together."""
        files = (self._range("counts", number, f"turn-{turn}") for number in range(ranges))
        total: Counts = sum(np.load(file) for file in files)
        return total

    def write_candidates(self, number: int, search: int, keys: Keys) -> None:
        """The keys of a range of entries among which a search will find its own."""
        write_array(self._range("candidates", number, f"search-{search}"), np.stack(keys))

    def pick(self, search: DigitSearch, number: int, ranges: int) -> Key:
        """What a search finds among the candidates of all ranges."""
        files = (self._range("candidates", i, f"search-{number}") for i in range(ranges))
        return search.pick(join_keys([list(np.load(file)) for file in files]))

    def write_held_out(self, part: str, number: int, pieces: Sequence[IntArray]) -> None:
        """The links of a part in a range of entries, each once, [2, num_links] a piece."""
        write_array(self._range(part, number, "links"), np.concatenate(pieces, axis=1))

    def held_out(self, part: str, ranges: int) -> Iterator[IntArray]:
        """Those of all ranges in the order of the graph, [2, num_links] a range."""
        for number in range(ranges):
            yield np.load(self._range(part, number, "links"))

    def write_hashes(self, number: int, hashes: Words) -> None:
        """The hashes of a range of entries, in the order of :func:`sort_into`."""
        write_array(self._range("hashes", number, "sorted"), hashes)

    def hashes_between(self, rows: Sequence[Rows]) -> Words:
        """The hashes of one range of hashes: of every range of entries those in ``rows``."""
        return _gather("hashes", self, rows, "sorted")

    def write_folds(self, number: int, folds: Folds) -> None:
        """The folds of a range of hashes."""
        write_array(self._range("folds", number, "dealt"), folds)

    def folds_of_range(self, rows: Sequence[Rows]) -> Folds:
        """The folds of one range of entries: of every range of hashes those in ``rows``."""
        return _gather("folds", self, rows, "dealt").astype(np.uint8, copy=False)

    def create_upper_folds(self, num_entries: int) -> None:
        """Make room for the folds of one entry of every edge."""
        create_array(self.folder / "upper_folds.npy", (num_entries,), np.uint8)

    def write_upper_folds(self, first: int, folds: Folds) -> None:
        write_rows(self.folder / "upper_folds.npy", first, folds)

    def upper_folds(self) -> Folds:
        """The fold of every edge at its upper entry, memory-mapped, [2 * num_edges]."""
        folds: Folds = np.load(self.folder / "upper_folds.npy", mmap_mode="r")
        return folds

    def write_links(self, number: int, pieces: Sequence[LinksByFold]) -> None:
        """The training links of a range of entries, piece by piece in the order of folds."""
        ends = np.concatenate([ends for ends, _ in pieces], axis=1)
        write_array(self._range("links", number, "ends"), ends)
        write_array(self._range("links", number, "counts"), np.stack([c for _, c in pieces]))

    def links(self, ranges: int) -> Iterator[LinksByFold]:
        """Those of all ranges in the order of the graph."""
        for number in range(ranges):
            ends = np.load(self._range("links", number, "ends"))
            counts = np.load(self._range("links", number, "counts"))
            cuts = np.concatenate([[0], np.cumsum(counts.sum(axis=1))])
            for piece, (first, last) in zip(counts, pairwise(cuts.tolist()), strict=True):
                yield ends[:, first:last], piece

    def _range(self, kind: str, number: int, name: str) -> Path:
        return self.folder / kind / f"range-{number:05}-{name}.npy"


def sort_into(bounds: Sequence[int], hashes: Words) -> tuple[npt.NDArray[np.int64], list[int]]:
    """Bring edges into the order of their ranges of hashes.

    Args:
        bounds: The first hash of each range; the first is 0.
        hashes: [num_edges].

    Returns:
        The order, in which those of a range stay as they were, [num_edges]; and how many each
        range has.
    """
    inner = np.array(bounds[1:], dtype=np.uint64)
    number = np.searchsorted(inner, hashes, side="right").astype(np.uint32)
    counts = np.bincount(number, minlength=len(bounds)).tolist()
    return np.argsort(number, kind="stable"), counts


def _gather(kind: str, work: SplitWork, rows: Sequence[Rows], name: str) -> npt.NDArray[Any]:
    pieces = [
        read_rows(work._range(kind, number, name), first, last)
        for number, (first, last) in enumerate(rows)
        if first < last
    ]
    return np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.uint64)
