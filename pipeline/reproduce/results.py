"""The table of all results: a row for every cell, method of its evaluation and metric."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from peg_core.atomic_file import atomic_path
from peg_core.errors import InputError

FILE = "results.parquet"
SCHEMA: dict[str, Any] = {
    "experiment": pl.String,
    "graph": pl.String,
    "method": pl.String,
    "features": pl.String,
    "split": pl.Int64,
    "protocol": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
    "paper": pl.Float64,
    "seconds": pl.Float64,
    "train_seconds": pl.Float64,
    "test_seconds": pl.Float64,
    "heuristic": pl.Boolean,
    "quick": pl.Boolean,
    "generated": pl.Boolean,
    "error": pl.String,
}
CURVES_FILE = "curves.parquet"
CURVES_SCHEMA: dict[str, Any] = {
    "experiment": pl.String,
    "measure": pl.String,
    "graph": pl.String,
    "method": pl.String,
    "x": pl.Float64,
    "y": pl.Float64,
}
# What a result belongs to; the seconds of splits are added up from one row of each.
CELL = ["graph", "method", "features"]
RUN = ["experiment", *CELL, "split"]


@dataclass(frozen=True)
class ResultRow:
    """One number, or the reason why there is none.

    Args:
        method: Of the experiment, or a heuristic that the evaluation has beside it.
        features: Of the method; a heuristic has none.
        protocol: What links were ranked against.
        paper: What the paper has there, in the unit of ``value``.
        seconds: Of all stages, also of those that other cells share.
        test_seconds: Of embedding the nodes and ranking the test links.
        quick: Whether the grid was cut down.
        generated: Whether the graph only stands in for the real one.
        error: Why the cell failed.
    """

    experiment: str
    graph: str
    method: str
    features: str
    split: int
    protocol: str = ""
    metric: str = ""
    value: float | None = None
    paper: float | None = None
    seconds: float | None = None
    train_seconds: float | None = None
    test_seconds: float | None = None
    heuristic: bool = False
    quick: bool = False
    generated: bool = False
    error: str | None = None


@dataclass(frozen=True)
class CurvePoint:
    """One point of a figure that is not made of metrics."""

    experiment: str
    measure: str
    graph: str
    method: str
    x: float
    y: float


def as_table(rows: Iterable[ResultRow]) -> pl.DataFrame:
    """The rows; a heuristic that several cells of a split have measured counts once."""
    found = pl.DataFrame([asdict(row) for row in rows], SCHEMA, orient="row")
    return found.unique([*RUN, "protocol", "metric"], keep="first", maintain_order=True)


def as_curves(points: Iterable[CurvePoint]) -> pl.DataFrame:
    return pl.DataFrame([asdict(point) for point in points], CURVES_SCHEMA, orient="row")


def keep_results(folder: Path, table: pl.DataFrame, curves: pl.DataFrame) -> None:
    """Replace what the folder has of these cells; others stay.

    Unless they are of the same experiment run in another way: quick or not, on other graphs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    kinds = table.select("experiment", "quick", "generated").unique()
    old = read_results(folder).join(table, on=RUN, how="anti")
    same = old.join(kinds, on="experiment", how="anti"), old.join(kinds, on=kinds.columns)
    for file, parts, schema in (
        (FILE, [*same, table], SCHEMA),
        (CURVES_FILE, [_other_curves(folder, curves), curves], CURVES_SCHEMA),
    ):
        together = pl.concat([part.select(*schema) for part in parts])
        with atomic_path(folder / file) as temporary:
            together.write_parquet(temporary)


def _other_curves(folder: Path, curves: pl.DataFrame) -> pl.DataFrame:
    found = read_results(folder, CURVES_FILE, CURVES_SCHEMA)
    return found.join(curves, on=["experiment", "measure", "graph", "method"], how="anti")


def read_results(
    folder: Path, file: str = FILE, schema: dict[str, Any] | None = None
) -> pl.DataFrame:
    """All results of a folder; an empty table where there are none yet."""
    needed = SCHEMA if schema is None else schema
    if not (folder / file).exists():
        return pl.DataFrame(schema=needed)
    table = pl.read_parquet(folder / file)
    if table.schema != pl.Schema(needed):
        raise InputError(
            f"{folder / file} is not a table of results as this version writes it; move it away, "
            "or give another folder: --out DIR"
        )
    return table


def summarise_results(table: pl.DataFrame) -> pl.DataFrame:
    """Mean and deviation over the splits: a row for every cell, protocol and metric."""
    done = table.filter(pl.col("error").is_null())
    return done.group_by(
        "experiment", *CELL, "heuristic", "protocol", "metric", maintain_order=True
    ).agg(
        mean=pl.col("value").mean(),
        deviation=pl.col("value").std(),
        splits=pl.len(),
        paper=pl.col("paper").first(),
        seconds=pl.col("seconds").mean(),
        train_seconds=pl.col("train_seconds").mean(),
        test_seconds=pl.col("test_seconds").mean(),
    )
