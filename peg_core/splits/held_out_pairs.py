"""Labelled pairs that nothing may learn from: links and non-links to rank."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from peg_core.atomic_file import atomic_path
from peg_core.storage.stored_path import readable

# Links that are looked at together where all of them might not fit into memory.
CHUNK = 2**20
COLUMNS = pa.schema([("source", pa.int64()), ("target", pa.int64()), ("label", pa.uint8())])


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
    return int(pq.read_metadata(readable(file)).num_rows)


def count_row_groups(file: Path) -> int:
    """Pieces of a table that can be read apart."""
    return int(pq.read_metadata(readable(file)).num_row_groups)


def pair_chunks(
    file: Path, row_groups: Sequence[int] | None = None
) -> Iterator[list[npt.NDArray[Any]]]:
    """Source, target and label of pairs, some at a time.

    Args:
        row_groups: The pieces of the table to read; None: all.
    """
    table = pq.ParquetFile(file)
    # one by one: a reader of several decodes ahead
    for group in range(table.num_row_groups) if row_groups is None else row_groups:
        for batch in table.iter_batches(CHUNK, [group]):
            yield [batch[name].to_numpy() for name in COLUMNS.names]


def write_pair_chunks(
    file: Path, chunks: Iterable[tuple[npt.NDArray[Any], npt.NDArray[Any], int]]
) -> None:
    """Write pairs that are not in memory together: source, target and their label."""
    with (
        atomic_path(file) as temporary,
        pq.ParquetWriter(str(temporary), COLUMNS, compression="zstd") as writer,
    ):
        for source, target, label in chunks:
            for first in range(0, len(source), CHUNK):
                ends = [end[first : first + CHUNK] for end in (source, target)]
                labels = np.full(len(ends[0]), label, dtype=np.uint8)
                columns = [end.astype(np.int64, copy=False) for end in ends]
                writer.write_table(pa.table([*columns, labels], schema=COLUMNS))
