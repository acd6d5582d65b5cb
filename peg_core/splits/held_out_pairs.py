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
# Which link a pair is ranked with, where non-links belong to links of their own.
LINK = "link"


@dataclass(frozen=True)
class HeldOutPairs:
    """Pairs to rank: links first, then non-links.

    Args:
        source, target: [num_pairs] node indices.
        label: [num_pairs] 1 for a link, 0 for none.
        link: [num_pairs] the place among the links of the one that a pair is ranked with, which
            for a link is its own; None where every link is ranked among all non-links.
    """

    source: npt.NDArray[np.int64]
    target: npt.NDArray[np.int64]
    label: npt.NDArray[np.uint8]
    link: npt.NDArray[np.int64] | None = None

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
            most: Take every second, third, ... so that no more than this are left; none: all. A
                link goes or stays together with the non-links of its own.
        """
        nothing = np.zeros(0, np.int64)
        step = 1 if most is None else max(1, -(-count_pairs(file) // most))
        if is_linked(file):
            return cls._open_linked(file, step)
        chunks, seen = [[nothing, nothing, nothing.astype(np.uint8)]], 0
        for chunk in pair_chunks(file):
            chunks.append([column[-seen % step :: step] for column in chunk])
            seen += len(chunk[0])
        return cls(*(np.concatenate(columns) for columns in zip(*chunks, strict=True)))

    @classmethod
    def _open_linked(cls, file: Path, step: int) -> Self:
        """Every so-manieth link with its non-links."""
        chunks = []
        for *pairs, link in pair_chunks(file, names=(*COLUMNS.names, LINK)):
            kept = link % step == 0
            chunks.append([*(column[kept] for column in pairs), link[kept] // step])
        return cls(*(np.concatenate(columns) for columns in zip(*chunks, strict=True)))

    def write(self, file: Path) -> None:
        columns = {"source": self.source, "target": self.target, "label": self.label}
        if self.link is not None:
            columns[LINK] = self.link
        with atomic_path(file) as temporary:
            pl.DataFrame(columns).write_parquet(temporary)


def count_pairs(file: Path) -> int:
    return int(pq.read_metadata(readable(file)).num_rows)


def is_linked(file: Path) -> bool:
    """Whether the non-links of a table belong to links of their own."""
    return LINK in pq.read_schema(readable(file)).names


def count_row_groups(file: Path) -> int:
    """Pieces of a table that can be read apart."""
    return int(pq.read_metadata(readable(file)).num_row_groups)


def pair_chunks(
    file: Path,
    row_groups: Sequence[int] | None = None,
    *,
    names: Sequence[str] = tuple(COLUMNS.names),
) -> Iterator[list[npt.NDArray[Any]]]:
    """Source, target and label of pairs, some at a time.

    Args:
        row_groups: The pieces of the table to read; None: all.
        names: The columns to read.
    """
    table = pq.ParquetFile(file)
    # one by one: a reader of several decodes ahead
    for group in range(table.num_row_groups) if row_groups is None else row_groups:
        for batch in table.iter_batches(CHUNK, [group]):
            yield [batch[name].to_numpy() for name in names]


def write_pair_chunks(
    file: Path,
    chunks: Iterable[tuple[npt.NDArray[Any], npt.NDArray[Any], int]],
    links: Iterable[npt.NDArray[Any]] | None = None,
) -> None:
    """Write pairs that are not in memory together: source, target and their label.

    Args:
        links: Of every chunk, which link its pairs are ranked with; None: they do not say.
    """
    schema = COLUMNS if links is None else COLUMNS.append(pa.field(LINK, pa.int64()))
    linked = None if links is None else iter(links)
    with (
        atomic_path(file) as temporary,
        pq.ParquetWriter(str(temporary), schema, compression="zstd") as writer,
    ):
        for source, target, label in chunks:
            numbers = [source, target, *([] if linked is None else [next(linked)])]
            for first in range(0, len(source), CHUNK):
                columns = [
                    values[first : first + CHUNK].astype(np.int64, copy=False) for values in numbers
                ]
                columns.insert(2, np.full(len(columns[0]), label, dtype=np.uint8))
                writer.write_table(pa.table(columns, schema=schema))
