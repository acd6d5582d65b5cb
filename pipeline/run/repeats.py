"""The same pipeline with several splits, summed up in one table."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, TextIO

import polars as pl

from peg_core.artifacts.manifest import Manifest
from peg_core.atomic_file import atomic_path
from peg_core.object_url import is_url
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.report.data import SUFFIXES
from pipeline.run.progress import RunDisplay
from pipeline.run.runner import open_cluster, run_pipeline
from pipeline.stages.report import evaluation_tables


def run_repeats(
    config: PipelineConfig,
    display: RunDisplay,
    *,
    forced: Collection[str] = (),
    events: TextIO | None = None,
) -> tuple[dict[str, Manifest], pl.DataFrame]:
    """Run ``config.repeats`` splits, each with the next seed of split and training.

    Returns:
        The manifests of the last run, and a row for every split, protocol, method and metric.
    """
    cluster = open_cluster(config)
    rows: list[dict[str, Any]] = []
    manifests: dict[str, Manifest] = {}
    try:
        for repeat in range(config.repeats):
            display.console.print(f"split {repeat + 1} of {config.repeats}")
            manifests = run_pipeline(
                repeated(config, repeat),
                display,
                forced=forced,
                cluster=cluster,
                events=events,
            )
            rows += _rows(repeat, evaluation_tables(manifests))
    finally:
        cluster.close()
    table = pl.DataFrame(rows)
    if not is_url(config.store):
        with atomic_path(Path(config.store) / "repeats.parquet") as temporary:
            table.write_parquet(temporary)
    return manifests, table


def _rows(split: int, tables: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return [
        {
            "split": split,
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
    """The configuration of one repetition."""
    return config.model_copy(
        update={
            "split": config.split.model_copy(update={"seed": config.split.seed + repeat}),
            "train": config.train.model_copy(update={"seed": config.train.seed + repeat}),
        }
    )


def summarise(table: pl.DataFrame) -> pl.DataFrame:
    """Mean and deviation over the splits, a row for every protocol, method and metric."""
    return table.group_by("protocol", "method", "metric", maintain_order=True).agg(
        mean=pl.col("value").mean(), deviation=pl.col("value").std(), splits=pl.len()
    )
