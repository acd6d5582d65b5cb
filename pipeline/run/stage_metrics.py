"""What a stage cost: rows per second, bytes, memory, retries; in manifests and as Ray metrics."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# What a stage counts, by how well it tells its work: the first that a stage has is its rows.
ROW_COUNTS = ("rows", "pairs", "train_links", "nodes")


@dataclass(frozen=True)
class StageMetrics:
    """Measurements of one stage.

    Args:
        rows: Rows, pairs, links or nodes that the stage went through; None: it counts none.
        rows_per_second: Over the whole stage, starting Ray included.
        bytes_written: Of its artifact.
        peak_memory_bytes: Private memory of the largest process that took part: what it maps is
            the page cache's.
        driver_memory_bytes: The same of the process that drives the run.
        retries: Tasks that were run again because a worker or node was lost.
    """

    rows: int | None
    rows_per_second: float | None
    bytes_written: int
    peak_memory_bytes: int
    driver_memory_bytes: int
    retries: int

    @classmethod
    def of(
        cls,
        counts: Mapping[str, Any],
        *,
        seconds: float,
        bytes_written: int,
        peak_memory_bytes: int,
        driver_memory_bytes: int,
        retries: int,
    ) -> StageMetrics:
        rows = next((int(counts[name]) for name in ROW_COUNTS if name in counts), None)
        return cls(
            rows=rows,
            rows_per_second=None if rows is None else round(rows / max(seconds, 1e-3), 1),
            bytes_written=bytes_written,
            peak_memory_bytes=peak_memory_bytes,
            driver_memory_bytes=driver_memory_bytes,
            retries=retries,
        )

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


METRIC_NAMES = tuple(field.name for field in dataclasses.fields(StageMetrics))
