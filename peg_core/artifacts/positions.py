"""Positions of the nodes: every encoding of one graph, and of the graph without each fold."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from peg_core.atomic_file import write_array
from peg_core.errors import ArtifactMismatch
from peg_core.splits.split_store import NO_FOLD
from peg_core.storage.shared_array import array_shape

Array = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Positions:
    """What the encoders wrote, one array per encoding and view of the graph."""

    folder: Path

    @classmethod
    def open(cls, folder: Path) -> Self:
        return cls(folder)

    @cached_property
    def num_encodings(self) -> int:
        return sum(1 for _ in self.folder.glob("encoding-*/"))

    @staticmethod
    def name(encoding: int, fold: int = NO_FOLD) -> str:
        """How a position array is called in manifests and on screen."""
        return f"encoding-{encoding}-{_view(fold)}"

    @staticmethod
    def column(encoding: int) -> str:
        """How an encoding is called in tables."""
        return f"encoding-{encoding}"

    def file(self, encoding: int, fold: int = NO_FOLD) -> Path:
        """Where the positions of an encoding are kept, [num_nodes, dimensions]."""
        return self.folder / self.column(encoding) / f"{_view(fold)}.npy"

    def vectors_file(self, encoding: int) -> Path:
        """Where the eigenvectors behind positions are kept, for a later start; may be missing."""
        return self.folder / self.column(encoding) / "vectors.npy"

    def state_folder(self, encoding: int, fold: int = NO_FOLD) -> Path:
        """Where an encoder that can be interrupted keeps how far it is."""
        file = self.file(encoding, fold)
        return file.with_name(f"{file.stem}-state")

    def write(self, positions: Array, encoding: int, fold: int = NO_FOLD) -> None:
        write_array(self.file(encoding, fold), positions)

    def widths(self) -> list[int]:
        """Dimensions of every encoding."""
        return [array_shape(self.file(encoding))[1] for encoding in range(self.num_encodings)]

    def arrays(self, *, num_nodes: int, fold: int = NO_FOLD) -> list[Array]:
        """Every encoding, memory-mapped, checked to be of a graph of this size."""
        arrays = []
        for encoding in range(self.num_encodings):
            file = self.file(encoding, fold)
            array = np.load(file, mmap_mode="r")
            if len(array) != num_nodes:
                raise ArtifactMismatch.of(
                    what=f"the positions {file} and the graph",
                    found=f"{len(array):,} nodes",
                    needed=f"{num_nodes:,}",
                )
            arrays.append(array)
        return arrays


def _view(fold: int) -> str:
    return "all" if fold == NO_FOLD else f"without-fold-{fold}"
