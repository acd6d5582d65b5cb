"""Nearest-neighbour indexes of positions and embeddings, side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from peg_core.artifacts.embedded_graph import EmbeddedGraph, Embeddings
from peg_core.artifacts.positions import Positions
from peg_core.inference.compared_rows import ComparedRows
from peg_core.inference.neighbour_index import IndexShard, NeighbourIndex
from peg_core.inference.vector_code import IndexDtype, VectorCode
from peg_core.storage.shared_array import array_shape, read_rows
from peg_core.storage.stored_path import is_there

EMBEDDING = "embedding"
# Of one shard, independent of the workers; up to this many nodes there is one.
ROWS_PER_SHARD = 4_000_000
ROWS_PER_STEP = 65_536
# A code is fitted to rows from this many places, evenly spread.
SAMPLE_PLACES, ROWS_PER_PLACE = 64, 256
# What a shard takes while it is built, beside the vectors: links, and room to grow.
BYTES_PER_ROW = 250

FloatArray = npt.NDArray[np.floating[Any]]
Rows = tuple[int, int]


@dataclass(frozen=True)
class IndexPart:
    """A shard of an index that is to be built.

    Args:
        name: Of the index.
        shard: Its number, from 0.
        start, stop: Its rows.
        dtype: Of the values in it.
        rows: All rows of the index, first and last + 1, where it has not those of all nodes.
    """

    name: str
    shard: int
    start: int
    stop: int
    dtype: IndexDtype = "float32"
    rows: Rows | None = None

    @property
    def stem(self) -> str:
        """How the shard is called; the first is called as its index."""
        name = self.name if self.rows is None else f"{self.name}-from-{self.rows[0]}"
        return name if self.shard == 0 else f"{name}-shard-{self.shard:03}"

    def build_bytes(self, width: int) -> int:
        """About the memory that building it takes."""
        row = width * np.dtype(self.dtype).itemsize + BYTES_PER_ROW
        return (self.stop - self.start) * row + ROWS_PER_STEP * width * 16


@dataclass(frozen=True)
class VectorIndexes:
    """An index for every encoding, and one for the embeddings.

    An index is one file, or several of consecutive rows: how many rows a file has stands in it.
    """

    folder: Path

    @classmethod
    def open(cls, folder: Path) -> Self:
        return cls(folder)

    @staticmethod
    def names(num_encodings: int) -> list[str]:
        return [*(Positions.column(number) for number in range(num_encodings)), EMBEDDING]

    @staticmethod
    def parts(
        name: str,
        num_rows: int,
        dtype: IndexDtype,
        *,
        most: int = ROWS_PER_SHARD,
        rows: Rows | None = None,
    ) -> list[IndexPart]:
        """The shards of an index of at most so many rows each; of some rows, or of all."""
        first, last = rows or (0, num_rows)
        return [
            IndexPart(name, number, start, min(start + most, last), dtype, rows)
            for number, start in enumerate(range(first, last, most))
        ]

    def file(self, stem: str) -> Path:
        return self.folder / f"{stem}.usearch"

    def build(self, part: IndexPart, positions: Positions, embeddings: Embeddings) -> int:
        """Build one shard from its own rows; returns how many."""
        source, unit_rows = _source(part.name, positions, embeddings)
        sample = (
            np.zeros((0, 0), np.float32) if part.dtype == "float32" else _sample(source, part.rows)
        )
        code = VectorCode.fit(sample, dtype=part.dtype, unit_rows=unit_rows)
        if part.dtype != "float32":
            code.save(self._code_file(part.stem))
        return IndexShard.build(
            self.file(part.stem),
            _blocks(source, part.start, part.stop),
            code,
            width=array_shape(source)[1],
            first=part.start,
        )

    def load(self, embedded: EmbeddedGraph, rows: Rows | None = None) -> list[NeighbourIndex]:
        """All indexes of some rows, or of all, memory-mapped."""
        opened = []
        for name in self.names(len(embedded.positions)):
            vectors, unit_rows = _vectors(name, embedded)
            first, last = rows or (0, len(vectors))
            shards = self._shards(name, last - first, unit_rows, rows)
            opened.append(NeighbourIndex(shards, vectors, num_rows=last - first))
        return opened

    def compare(self, embedded: EmbeddedGraph, chosen: npt.NDArray[np.int64]) -> list[ComparedRows]:
        """What finds chosen rows, in place of the indexes."""
        sources = (_vectors(name, embedded) for name in self.names(len(embedded.positions)))
        return [ComparedRows(vectors, chosen, unit_rows=unit) for vectors, unit in sources]

    def _shards(
        self, name: str, num_rows: int, unit_rows: bool, rows: Rows | None
    ) -> list[IndexShard]:
        """The shards of an index, until all rows are there."""
        shards: list[IndexShard] = []
        while sum(map(len, shards)) < num_rows:
            stem = IndexPart(name, len(shards), 0, 0, rows=rows).stem
            if not is_there(self.file(stem)):
                break  # the index says how many rows are missing
            code, code_file = VectorCode(unit_rows=unit_rows), self._code_file(stem)
            if is_there(code_file):
                code = VectorCode.open(code_file, unit_rows=unit_rows)
            shards.append(IndexShard(self.file(stem), code))
        return shards

    def _code_file(self, stem: str) -> Path:
        """What turns vectors into the values of a shard; float32 needs none."""
        return self.folder / f"{stem}.json"


def vector_width(name: str, positions: Positions, embeddings: Embeddings) -> int:
    """Dimensions of the rows of an index; of the rows nothing is read."""
    return array_shape(_source(name, positions, embeddings)[0])[1]


def _source(name: str, positions: Positions, embeddings: Embeddings) -> tuple[Path, bool]:
    """The file with the rows of an index, and whether they are scaled to length 1."""
    if name == EMBEDDING:
        return embeddings.file, True
    return positions.file(VectorIndexes.names(positions.num_encodings).index(name)), False


def _vectors(name: str, embedded: EmbeddedGraph) -> tuple[FloatArray, bool]:
    """The rows of an index, and whether they are scaled to length 1."""
    if name == EMBEDDING:
        return embedded.embeddings, True
    return embedded.positions[VectorIndexes.names(len(embedded.positions)).index(name)], False


def _blocks(source: Path, start: int, stop: int) -> Iterator[FloatArray]:
    for first in range(start, stop, ROWS_PER_STEP):
        yield read_rows(source, first, min(first + ROWS_PER_STEP, stop))


def _sample(source: Path, rows: Rows | None) -> FloatArray:
    """Rows from all over a file or some of its rows, the same for every shard."""
    start, stop = rows or (0, array_shape(source)[0])
    if stop - start <= SAMPLE_PLACES * ROWS_PER_PLACE:
        return np.array(read_rows(source, start, stop))
    starts = np.linspace(start, stop - ROWS_PER_PLACE, SAMPLE_PLACES).astype(np.int64).tolist()
    return np.concatenate([read_rows(source, first, first + ROWS_PER_PLACE) for first in starts])
