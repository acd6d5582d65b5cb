"""Nearest neighbours among the rows of an array: HNSW graphs of usearch, memory-mapped."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from usearch.index import Index

from peg_core.atomic_file import atomic_path
from peg_core.errors import ArtifactMismatch
from peg_core.inference.vector_code import IndexDtype, VectorCode

FloatArray = npt.NDArray[np.floating[Any]]

NO_NODE = -1
CONNECTIVITY, EXPANSION_ADD = 16, 128
KINDS: dict[IndexDtype, str] = {"float32": "f32", "float16": "f16", "int8": "i8"}


class Nearest(NamedTuple):
    """Rows near others by distance, the nearest first, [num_queries, count] each."""

    rows: npt.NDArray[np.int64]  # NO_NODE where there are no more
    distances: npt.NDArray[np.float32]  # squared, in the units of the index; infinite likewise


class IndexShard:
    """An HNSW graph over consecutive rows of an array.

    Args:
        file: What :meth:`build` wrote; mapped, not read.
        code: The one that it was built with.
    """

    def __init__(self, file: Path, code: VectorCode) -> None:
        # no table of keys: it would be 35 bytes a row of every process, and nobody asks it
        index = Index.restore(os.fspath(file), view=True, enable_key_lookups=False)
        if index is None:
            raise ArtifactMismatch.of(
                what=f"the index {file} and its vectors", found="none", needed="an index"
            )
        self._index, self._code = index, code

    def __len__(self) -> int:
        return len(self._index)

    @staticmethod
    def build(
        file: Path, blocks: Iterable[FloatArray], code: VectorCode, *, width: int, first: int = 0
    ) -> int:
        """Index rows, one after the other by one thread: the same rows, the same index.

        Args:
            blocks: [num_rows, width] each, in order.
            first: What the first row is called.

        Returns:
            How many rows there were.
        """
        index = Index(
            ndim=width,
            metric="l2sq",
            dtype=KINDS[code.dtype],
            connectivity=CONNECTIVITY,
            expansion_add=EXPANSION_ADD,
            enable_key_lookups=False,
        )
        for block in blocks:
            start = first + len(index)
            keys = np.arange(start, start + len(block), dtype=np.uint64)
            index.add(keys, code.encode(block), threads=1)
        with atomic_path(file) as temporary:
            index.save(str(temporary))
        return len(index)

    def search(self, vectors: FloatArray, *, count: int, expansion: int) -> Nearest:
        """About the nearest ``count`` rows of each vector.

        Args:
            expansion: Rows that are kept in sight on the way: more find better.
        """
        self._index.expansion_search = expansion  # type: ignore[misc]  # has a setter
        queries = np.atleast_2d(self._code.encode(vectors))
        found = self._index.search(queries, count, threads=numba.get_num_threads())
        keys = np.atleast_2d(found.keys).astype(np.int64)
        counts = np.atleast_1d(getattr(found, "counts", len(found)))
        there = np.arange(keys.shape[1]) < counts[:, None]
        rows = np.full((len(queries), count), NO_NODE, dtype=np.int64)
        distances = np.full((len(queries), count), np.inf, dtype=np.float32)
        rows[:, : keys.shape[1]][there] = keys[there]
        distances[:, : keys.shape[1]][there] = np.atleast_2d(found.distances)[there]
        return Nearest(rows, distances)


class NeighbourIndex:
    """Rows near other rows by Euclidean distance.

    Args:
        shards: Of all rows that can be found, in order, of one code.
        vectors: [num_rows, width], the rows that were indexed, and those that are asked for.
        num_rows: How many can be found; none: all.
    """

    def __init__(
        self, shards: Sequence[IndexShard], vectors: FloatArray, *, num_rows: int | None = None
    ) -> None:
        found = sum(map(len, shards))
        needed = len(vectors) if num_rows is None else num_rows
        if found != needed:
            raise ArtifactMismatch.of(
                what="an index and its vectors",
                found=f"{found:,} rows",
                needed=f"{needed:,}",
            )
        self._shards, self._vectors = shards, vectors

    def search(self, rows: npt.NDArray[np.int64], *, count: int) -> npt.NDArray[np.int64]:
        """About the nearest ``count`` rows of each given row, [num_rows, count].

        The row itself is among them; where there are fewer the rest is ``NO_NODE``.
        """
        queries = self._vectors[rows]
        # of several shards each has a part of the nearest alone: half the effort finds as many
        expansion = max(64, 2 * count if len(self._shards) == 1 else count)
        found = [s.search(queries, count=count, expansion=expansion) for s in self._shards]
        if len(found) == 1:
            return found[0].rows
        together = Nearest(*(np.concatenate(part, axis=1) for part in zip(*found, strict=True)))
        order = np.argsort(together.distances, axis=1, kind="stable")[:, :count]
        return np.take_along_axis(together.rows, order, axis=1)
