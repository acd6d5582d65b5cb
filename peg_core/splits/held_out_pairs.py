"""Labelled pairs that nothing may learn from: links and non-links to rank."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow.parquet as pq

from peg_core.atomic_file import atomic_path

# Links that are looked at together where all of them might not fit into memory.
CHUNK = 2**20


@dataclass(frozen=True)
class HeldOutPairs:
    """Pairs to rank: links first, then non-links.

    Args:
        source, target: [num_pairs] node indices.
        label: [num_pairs] 1 for a link, 0 for none.
    """

    source: npt.NDArray[np.int64]
    target: npt.NDArray[np.int64]
    label: npt.NDArray[np.uint8]

    @property
    def links(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        chosen = self.label == 1
        return self.source[chosen], self.target[chosen]

    def by_label(self, scores: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Scores of the links and of the non-links."""
        return scores[self.label == 1], scores[self.label == 0]

    @classmethod
    def open(cls, file: Path, *, most: int | None = None) -> Self:
        """Read the pairs of a table.

        Args:
            most: Take every second, third, ... so that no more than this are left; none: all.
        """
        nothing = np.zeros(0, np.int64)
        chunks, seen = [[nothing, nothing, nothing.astype(np.uint8)]], 0
        step = 1 if most is None else max(1, -(-count_pairs(file) // most))
        for chunk in pair_chunks(file):
            chunks.append([column[-seen % step :: step] for column in chunk])
            seen += len(chunk[0])
        return cls(*(np.concatenate(columns) for columns in zip(*chunks, strict=True)))

    def write(self, file: Path) -> None:
        columns = {"source": self.source, "target": self.target, "label": self.label}
        with atomic_path(file) as temporary:
            pl.DataFrame(columns).write_parquet(temporary)


def count_pairs(file: Path) -> int:
    return int(pq.read_metadata(file).num_rows)


def pair_chunks(file: Path) -> Iterator[list[npt.NDArray[Any]]]:
    """Source, target and label of pairs, some at a time."""
    for batch in pq.ParquetFile(file).iter_batches(CHUNK):
        yield [batch[name].to_numpy() for name in ("source", "target", "label")]
