"""Scores of the test pairs by every method, and the metrics made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from peg_core.atomic_file import atomic_path, write_array

# Name of the scores of the split's own test pairs.
TEST_PAIRS = "test_pairs"
PARTNER_LISTS = "partners"


@dataclass(frozen=True)
class MethodScores:
    """The scores of one method, in parts; a method is a model or the heuristics together."""

    folder: Path

    @classmethod
    def open(cls, folder: Path) -> Self:
        return cls(folder)

    def write_pairs(self, name: str, part: int, table: pa.Table) -> None:
        """Write scored rows of a table of labelled pairs."""
        with atomic_path(self.folder / name / f"part-{part:06}.parquet") as temporary:
            pq.write_table(table, temporary, compression="zstd")

    def pair_files(self, name: str) -> list[Path]:
        """In the order of the table that was scored."""
        return sorted((self.folder / name).glob("part-*.parquet"))

    def pairs(
        self, name: str, columns: Sequence[str], *, most_parts: int | None = None
    ) -> pl.DataFrame:
        """Scored rows.

        Args:
            most_parts: Take every second, third, ... part, so that no more than this are read.
        """
        files = self.pair_files(name)
        step = 1 if most_parts is None else max(1, -(-len(files) // most_parts))
        return pl.read_parquet(files[::step], columns=list(columns))

    def write_hard(self, name: str, part: int, scores: npt.NDArray[np.float32]) -> None:
        """Write scores of hard non-links, [num_scores, num_anchors, count]."""
        write_array(self._hard_file(name, part), scores)

    def hard(self, name: str, part: int, score: int) -> npt.NDArray[np.float32]:
        """One of the scores of a part, memory-mapped, [num_anchors, count]."""
        scores: npt.NDArray[np.float32] = np.load(self._hard_file(name, part), mmap_mode="r")
        return scores[score]

    def write_lists(self, part: int, lists: npt.NDArray[np.int64]) -> None:
        """Write the best partners of some nodes, [num_nodes, length]."""
        write_array(self._hard_file(PARTNER_LISTS, part), lists)

    def lists(self, parts: int) -> npt.NDArray[np.int64]:
        """The best partners of all nodes that were ranked, [num_nodes, length]."""
        found = [np.load(self._hard_file(PARTNER_LISTS, part)) for part in range(parts)]
        return np.concatenate(found)

    def scratch(self, name: str, column: str) -> Path:
        """Room to sort scores in."""
        return self.folder / f"runs-{name}-{column}"

    def _hard_file(self, name: str, part: int) -> Path:
        return self.folder / name / f"part-{part:06}.npy"


@dataclass(frozen=True)
class Evaluation:
    """What the evaluation wrote: one folder per method, and the table of metrics."""

    folder: Path

    @classmethod
    def open(cls, folder: Path) -> Self:
        return cls(folder)

    def method(self, part: str) -> MethodScores:
        return MethodScores(self.folder / part)

    def write_metrics(self, table: pl.DataFrame) -> None:
        with atomic_path(self._metrics_file) as temporary:
            table.write_parquet(temporary)

    def metrics(self) -> pl.DataFrame:
        """A row for every protocol, method and metric."""
        return pl.read_parquet(self._metrics_file)

    @property
    def _metrics_file(self) -> Path:
        return self.folder / "metrics.parquet"
