"""Nearest-neighbour indexes of positions and embeddings, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from peg_core.artifacts.embedded_graph import EmbeddedGraph
from peg_core.artifacts.positions import Positions
from peg_core.inference.neighbour_index import NeighbourIndex

EMBEDDING = "embedding"


@dataclass(frozen=True)
class VectorIndexes:
    """An index for every encoding, and one for the embeddings."""

    folder: Path

    @classmethod
    def open(cls, folder: Path) -> Self:
        return cls(folder)

    @staticmethod
    def names(num_encodings: int) -> list[str]:
        return [*(Positions.column(number) for number in range(num_encodings)), EMBEDDING]

    def file(self, name: str) -> Path:
        return self.folder / f"{name}.usearch"

    def build(self, name: str, embedded: EmbeddedGraph) -> int:
        """Build one index; returns its rows."""
        vectors, unit_rows = _vectors(name, embedded)
        NeighbourIndex.build(vectors, self.file(name), unit_rows=unit_rows)
        return len(vectors)

    def load(self, embedded: EmbeddedGraph) -> list[NeighbourIndex]:
        """All indexes, memory-mapped."""
        opened = []
        for name in self.names(len(embedded.positions)):
            vectors, unit_rows = _vectors(name, embedded)
            opened.append(NeighbourIndex(self.file(name), vectors, unit_rows=unit_rows))
        return opened


def _vectors(name: str, embedded: EmbeddedGraph) -> tuple[npt.NDArray[np.floating[Any]], bool]:
    """The rows of an index, and whether they are scaled to length 1."""
    if name == EMBEDDING:
        return embedded.embeddings, True
    return embedded.positions[VectorIndexes.names(len(embedded.positions)).index(name)], False
