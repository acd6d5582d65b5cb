"""Non-links to rank test links against that the split does not have."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from peg_core.atomic_file import write_array

# Of one part; independent of the workers, so that a rerun finds its shards.
ANCHORS_PER_PART = 2_048

IntArray = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True)
class RankingNegatives:
    """Hard non-links of every node with a test link, in parts; and random ones, as a table."""

    folder: Path

    @classmethod
    def open(cls, folder: Path) -> Self:
        return cls(folder)

    @property
    def random_file(self) -> Path:
        """The test links with as many random non-links."""
        return self.folder / "random.parquet"

    def write_anchors(self, anchors: IntArray) -> int:
        """Write the nodes that have a test link; returns how many parts their non-links have."""
        write_array(self._anchors_file, anchors)
        return -(-len(anchors) // ANCHORS_PER_PART)

    def anchors(self) -> npt.NDArray[np.int64]:
        """All of them, sorted, memory-mapped."""
        anchors: npt.NDArray[np.int64] = np.load(self._anchors_file, mmap_mode="r")
        return anchors

    def part_anchors(self, part: int) -> npt.NDArray[np.int64]:
        rows = slice(part * ANCHORS_PER_PART, (part + 1) * ANCHORS_PER_PART)
        return np.array(self.anchors()[rows])

    def write_part(self, part: int, nodes: IntArray) -> None:
        write_array(self._part_file(part), nodes)

    def part(self, part: int) -> IntArray:
        """The non-links of a part's anchors, [num_anchors, count]."""
        nodes: IntArray = np.load(self._part_file(part))
        return nodes

    @property
    def num_parts(self) -> int:
        return len(list(self.folder.glob("part-*.npy")))

    @property
    def _anchors_file(self) -> Path:
        return self.folder / "anchors.npy"

    def _part_file(self, part: int) -> Path:
        return self.folder / f"part-{part:06}.npy"
