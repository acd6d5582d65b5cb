"""Metrics of all methods as rows of a table: long as they are stored, wide as they are shown."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import polars as pl

from workers.tasks.evaluate import RankResult

# Which pairs are ranked: all, or those without and with an end that has no training edge.
SUBSETS = ("", "warm", "cold")


class Ranking(NamedTuple):
    """One row of the table to be: what is ranked, how, and from which scores.

    ``subset`` is ``warm`` or ``cold`` where only such pairs are, else empty.
    """

    protocol: str
    method: str
    part: str
    column: str
    number: int
    subset: str = ""

    @property
    def heading(self) -> str:
        """Of its table."""
        return f"{self.protocol}, {self.subset} pairs" if self.subset else self.protocol


SCHEMA = {
    "protocol": pl.String,
    "method": pl.String,
    "metric": pl.String,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "deviation": pl.Float64,
}


def tabulate(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Long to wide: by protocol a row per method, ``<metric>_low`` and so on beside the metric."""
    table: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows:
        methods = table.setdefault(row["protocol"], {})
        wide = methods.setdefault(row["method"], {"method": row["method"]})
        wide[row["metric"]] = row["value"]
        for suffix, key in (("low", "low"), ("high", "high"), ("std", "deviation")):
            if row[key] is not None:
                wide[f"{row['metric']}_{suffix}"] = row[key]
    return {protocol: list(methods.values()) for protocol, methods in table.items()}


def metric_rows(
    protocols: list[str], rankings: list[Ranking], results: list[RankResult]
) -> list[dict[str, Any]]:
    """The table in long form, models first; means over the seeds.

    Args:
        protocols: In the order of their tables; of each, all pairs come before subsets.
        rankings, results: What was ranked, and its metrics.
    """
    by_row: dict[tuple[str, str, str], list[list[float | None]]] = {}
    ranked = sorted(
        zip(rankings, results, strict=True),
        key=lambda item: (protocols.index(item[0].protocol), SUBSETS.index(item[0].subset)),
    )
    for ranking, result in ranked:
        for metric, found in result.items():
            by_row.setdefault((ranking.heading, ranking.method, metric), []).append(found)
    rows = []
    for (protocol, method, metric), seeds in by_row.items():
        values = np.array(seeds, dtype=np.float64)  # [num_seeds, 3]
        value, low, high = (None if np.isnan(v) else float(v) for v in values.mean(axis=0))
        deviation = float(np.std(values[:, 0], ddof=1)) if len(seeds) > 1 else None
        rows.append(
            dict(zip(SCHEMA, (protocol, method, metric, value, low, high, deviation), strict=True))
        )
    return rows


def by_seed(
    seeds: dict[str, str], rankings: list[Ranking], results: list[RankResult]
) -> dict[str, Any]:
    """Metrics of every model, by seed and heading.

    Args:
        seeds: By the part of the artifact with their scores.
    """
    found: dict[str, Any] = {}
    for ranking, result in zip(rankings, results, strict=True):
        if ranking.part in seeds:
            values = {name: value for name, (value, *_) in result.items()}
            found.setdefault(seeds[ranking.part], {})[ranking.heading] = values
    return found
