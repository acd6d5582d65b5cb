"""Nearest neighbours among the rows of an array: an HNSW graph of usearch, memory-mapped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from usearch.index import Index

from peg_core.atomic_file import atomic_path
from peg_core.errors import ArtifactMismatch

FloatArray = npt.NDArray[np.floating[Any]]

NO_NODE = -1
ROWS_PER_STEP = 65_536
CONNECTIVITY, EXPANSION_ADD = 16, 128


class NeighbourIndex:
    """Rows near other rows by Euclidean distance.

    Args:
        file: What :meth:`build` wrote; mapped, not read.
        vectors: [num_rows, width], the rows that were indexed.
        unit_rows: As when it was built.
    """

    def __init__(self, file: Path, vectors: FloatArray, *, unit_rows: bool) -> None:
        index = Index.restore(str(file), view=True)
        if index is None or len(index) != len(vectors):
            found = "none" if index is None else f"{len(index):,} rows"
            raise ArtifactMismatch.of(
                what=f"the index {file} and its vectors", found=found, needed=f"{len(vectors):,}"
            )
        self._index, self._vectors, self._unit_rows = index, vectors, unit_rows

    @staticmethod
    def build(vectors: FloatArray, file: Path, *, unit_rows: bool) -> None:
        """Index all rows, one after the other by one thread: the same rows, the same index.

        Args:
            unit_rows: Scale rows to length 1 first, so that angles count.
        """
        index = Index(
            ndim=vectors.shape[1],
            metric="l2sq",
            dtype="f32",
            connectivity=CONNECTIVITY,
            expansion_add=EXPANSION_ADD,
        )
        for start in range(0, len(vectors), ROWS_PER_STEP):
            rows = _prepare(vectors[start : start + ROWS_PER_STEP], unit_rows)
            index.add(np.arange(start, start + len(rows), dtype=np.uint64), rows, threads=1)
        with atomic_path(file) as temporary:
            index.save(str(temporary))

    def search(self, rows: npt.NDArray[np.int64], *, count: int) -> npt.NDArray[np.int64]:
        """About the nearest ``count`` rows of each given row, [num_rows, count].

        The row itself is among them; where there are fewer the rest is ``NO_NODE``.
        """
        self._index.expansion_search = max(64, 2 * count)  # type: ignore[misc]  # has a setter
        queries = _prepare(self._vectors[rows], self._unit_rows)
        found = self._index.search(np.atleast_2d(queries), count, threads=1)
        keys = np.atleast_2d(found.keys).astype(np.int64)
        counts = np.atleast_1d(getattr(found, "counts", len(found)))
        out = np.full((len(rows), count), NO_NODE, dtype=np.int64)
        there = np.arange(keys.shape[1]) < counts[:, None]
        out[:, : keys.shape[1]][there] = keys[there]
        return out


def _prepare(rows: FloatArray, unit_rows: bool) -> npt.NDArray[np.float32]:
    rows = np.ascontiguousarray(rows, dtype=np.float32)
    if not unit_rows:
        return rows
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
