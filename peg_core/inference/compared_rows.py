"""Nearest neighbours among chosen rows of an array, by comparing with each of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.inference.neighbour_index import NO_NODE

FloatArray = npt.NDArray[np.floating[Any]]

# Comparisons in memory at a time, 16 MB.
MOST_COMPARED = 2**22


class ComparedRows:
    """Rows near others by Euclidean distance, without an index: exact, quick while they are few.

    Args:
        vectors: [num_rows, width].
        chosen: Which rows can be found.
        unit_rows: Whether vectors are scaled to length 1 first.
    """

    def __init__(
        self, vectors: FloatArray, chosen: npt.NDArray[np.int64], *, unit_rows: bool
    ) -> None:
        self._vectors, self._chosen, self._unit_rows = vectors, chosen, unit_rows
        self._rows = self._scaled(chosen)
        self._half_squares = np.square(self._rows).sum(axis=1) / 2

    def search(self, rows: npt.NDArray[np.int64], *, count: int) -> npt.NDArray[np.int64]:
        """The nearest ``count`` chosen rows of each given row, in any order, [num_rows, count].

        Where there are fewer the rest is ``NO_NODE``.
        """
        out = np.full((len(rows), count), NO_NODE, dtype=np.int64)
        count = min(count, len(self._chosen))
        step = max(1, MOST_COMPARED // max(1, len(self._chosen)))
        for start in range(0, len(rows) if count else 0, step):
            distances = self._half_squares - self._scaled(rows[start : start + step]) @ self._rows.T
            best = np.argpartition(distances, count - 1, axis=1)[:, :count]
            out[start : start + step, :count] = self._chosen[best]
        return out

    def _scaled(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        vectors: npt.NDArray[np.float32] = np.array(self._vectors[rows], dtype=np.float32)
        if not self._unit_rows:
            return vectors
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors /= np.where(lengths > 0, lengths, 1)
        return vectors
