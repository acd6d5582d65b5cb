"""The candidates of a run with their scores."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import polars as pl


@dataclass(frozen=True)
class ScoredPairs:
    """Tables in the order of the candidates: both ids, then what was asked for."""

    folder: Path

    @classmethod
    def open(cls, folder: Path) -> Self:
        return cls(folder)

    @property
    def files(self) -> list[Path]:
        return sorted(self.folder.glob("part-*.parquet"))

    def table(self, *, most_files: int | None = None) -> pl.LazyFrame:
        """All rows, or those of every second, third, ... file so that no more are read."""
        files = self.files
        step = 1 if most_files is None else max(1, -(-len(files) // most_files))
        return pl.scan_parquet(files[::step])
