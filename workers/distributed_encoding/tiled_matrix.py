"""A tall matrix as tiles on disk."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from peg_core.atomic_file import write_array
from peg_core.encoding.spectral.normalised_operator import padded_width
from peg_core.graph.graph_store import FloatArray

# Rows that a task holds at a time when it works through a chunk.
STRIP_ROWS = 65_536


@dataclass(frozen=True)
class TileLayout:
    """Where a matrix is cut. Depends on the graph alone, never on the number of workers.

    Args:
        bounds: Rows at which chunks begin, and the end, [chunks + 1].
        num_columns: Columns of the matrix.
        width: Columns of a block; the last block may have fewer.
    """

    bounds: tuple[int, ...]
    num_columns: int
    width: int

    @property
    def num_rows(self) -> int:
        return self.bounds[-1]

    @property
    def chunks(self) -> range:
        return range(len(self.bounds) - 1)

    @property
    def blocks(self) -> range:
        return range(-(-self.num_columns // self.width))

    def columns(self, block: int) -> slice:
        return slice(block * self.width, min((block + 1) * self.width, self.num_columns))

    def rows(self, chunk: int) -> slice:
        return slice(self.bounds[chunk], self.bounds[chunk + 1])

    def strips(self, chunk: int) -> Iterator[slice]:
        """Ranges of rows, counted from the beginning of the chunk."""
        rows = self.bounds[chunk + 1] - self.bounds[chunk]
        cuts = [*range(0, rows, STRIP_ROWS), rows]
        return (slice(a, b) for a, b in itertools.pairwise(cuts))


@dataclass(frozen=True)
class TiledMatrix:
    """Tiles of rows x columns, each an ``.npy`` file that is there whole or not at all.

    Column blocks may lie in different folders, so that columns which no longer change
    are never copied.

    Args:
        layout: Where the matrix is cut.
        folders: Folder of every column block, [blocks].
    """

    layout: TileLayout
    folders: tuple[Path, ...]

    @classmethod
    def within(cls, layout: TileLayout, folder: Path) -> TiledMatrix:
        """All column blocks in one folder."""
        return cls(layout, (folder,) * len(layout.blocks))

    def file(self, block: int, chunk: int) -> Path:
        return self.folders[block] / f"block-{block:03d}" / f"chunk-{chunk:05d}.npy"

    def open_tile(self, block: int, chunk: int) -> FloatArray:
        """A tile, memory-mapped, [rows, width]."""
        rows = self.layout.rows(chunk)
        mapped = rows.stop > rows.start  # an empty file cannot be mapped
        tile: FloatArray = np.load(self.file(block, chunk), mmap_mode="r" if mapped else None)
        return tile

    def read_block(self, block: int, kind: npt.DTypeLike) -> FloatArray:
        """All rows of a column block, padded by zeros to a width the kernel knows."""
        columns = self.layout.columns(block)
        width = columns.stop - columns.start
        out = np.zeros((self.layout.num_rows, padded_width(width)), dtype=kind)
        for chunk in self.layout.chunks:
            out[self.layout.rows(chunk), :width] = self.open_tile(block, chunk)
        return out

    def write_block(self, block: int, values: FloatArray) -> None:
        """Write a column block; columns of padding are left out."""
        columns = self.layout.columns(block)
        for chunk in self.layout.chunks:
            tile = values[self.layout.rows(chunk), : columns.stop - columns.start]
            write_array(self.file(block, chunk), np.ascontiguousarray(tile))

    def open_chunk(self, chunk: int, blocks: Sequence[int]) -> list[FloatArray]:
        """The tiles of a chunk of rows in the given column blocks, memory-mapped."""
        return [self.open_tile(block, chunk) for block in blocks]

    def write_chunk(self, chunk: int, blocks: Sequence[int], values: FloatArray) -> None:
        """Write a chunk of rows; ``values`` holds the columns of the given blocks."""
        first = self.layout.columns(blocks[0]).start
        for block in blocks:
            columns = self.layout.columns(block)
            tile = values[:, columns.start - first : columns.stop - first]
            write_array(self.file(block, chunk), np.ascontiguousarray(tile))


def join_rows(tiles: Sequence[FloatArray], rows: slice, kind: npt.DTypeLike) -> FloatArray:
    """The given rows of tiles side by side, [rows, columns]."""
    return np.concatenate([tile[rows] for tile in tiles], axis=1, dtype=kind)
