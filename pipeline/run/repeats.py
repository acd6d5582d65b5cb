"""The same pipeline with several splits, summed up in one table."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TextIO

import polars as pl

from peg_core.artifacts.manifest import Manifest
from peg_core.atomic_file import atomic_path
from peg_core.object_url import is_url
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.report.data import SUFFIXES
from pipeline.run.progress import RunDisplay
from pipeline.run.runner import open_cluster, run_pipeline
from pipeline.stages.report import evaluation_tables


@dataclass(frozen=True)
class RunSeries:
    """Runs of one pipeline that differ in their splits.

    Args:
        noun: What each of them is: a ``split`` drawn with another seed, or a ``window`` of time.
        file: The table of all runs, in the store.
        configs: In the order of the runs; the results of the last one stay.
    """

    noun: str
    file: str
    configs: list[PipelineConfig]

    @classmethod
    def of(cls, config: PipelineConfig) -> Self | None:
        """The runs that a configuration asks for; None where it is one alone."""
        if config.split.windows > 1:
            windows = [windowed(config, window) for window in range(config.split.windows)]
            return cls("window", "windows.parquet", windows)
        if config.repeats > 1:
            repeats = [repeated(config, repeat) for repeat in range(config.repeats)]
            return cls("split", "repeats.parquet", repeats)
        return None


def run_series(
    series: RunSeries,
    display: RunDisplay,
    *,
    forced: Collection[str] = (),
    events: TextIO | None = None,
    anyway: bool = False,
) -> tuple[dict[str, Manifest], pl.DataFrame]:
    """Run one after the other.

    Returns:
        The manifests of the last run, and a row for every run, protocol, method and metric.
    """
    configs = series.configs
    cluster = open_cluster(configs[-1])
    rows: list[dict[str, Any]] = []
    manifests: dict[str, Manifest] = {}
    try:
        for number, config in enumerate(configs):
            display.console.print(f"{series.noun} {number + 1} of {len(configs)}")
            manifests = run_pipeline(
                config, display, forced=forced, cluster=cluster, events=events, anyway=anyway
            )
            rows += _rows({series.noun: number}, evaluation_tables(manifests))
    finally:
        cluster.close()
    table = pl.DataFrame(rows)
    store = configs[-1].store
    if not is_url(store):
        with atomic_path(Path(store) / series.file) as temporary:
            table.write_parquet(temporary)
    return manifests, table


def _rows(run: dict[str, int], tables: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return [
        {
            **run,
            "protocol": protocol,
            "method": row["method"],
            "metric": name,
            "value": value,
        }
        for protocol, table in tables.items()
        for row in table
        for name, value in row.items()
        if name != "method" and not name.endswith(SUFFIXES)
    ]


def repeated(config: PipelineConfig, repeat: int) -> PipelineConfig:
    """The configuration of one repetition: the next seed of split and training."""
    return config.model_copy(
        update={
            "split": config.split.model_copy(update={"seed": config.split.seed + repeat}),
            "train": config.train.model_copy(update={"seed": config.train.seed + repeat}),
        }
    )


def windowed(config: PipelineConfig, window: int) -> PipelineConfig:
    """The configuration of one window of time: later edges are left out.

    Scores and recommendations are those of the newest.
    """
    later = config.split.windows - 1 - window
    split = config.split.model_copy(update={"leave_out": round(later * config.split.test, 12)})
    nothing: dict[str, Any] = {"score": None, "recommend": None} if later else {}
    return config.model_copy(update={"split": split, **nothing})


def summarise(table: pl.DataFrame) -> pl.DataFrame:
    """Mean and deviation over the runs, a row for every protocol, method and metric."""
    return table.group_by("protocol", "method", "metric", maintain_order=True).agg(
        mean=pl.col("value").mean(),
        deviation=pl.col("value").std(),
        splits=pl.len(),
        values=pl.col("value"),
    )
