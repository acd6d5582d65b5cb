"""Times, weights and bad rows of an edge list."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pyarrow as pa

from pipeline.config.field_types import shorten
from pipeline.draft.column_names import TIMES, WEIGHTS, has_word
from pipeline.draft.edge_ends import Ends
from pipeline.draft.guess import Guess
from pipeline.draft.sampled_table import SampledTable

# Different times from which on a newest part can be told from the rest.
FEWEST_TIMES = 10


def find_time(table: SampledTable, ends: Ends) -> Guess:
    """The column with the times: dates and timestamps by their type, integers by their name."""
    others = [name for name in table.rows.columns if name not in ends.columns]
    dates = [name for name in others if _is_date(table.type_of(name))]
    numbers = [
        name
        for name in others
        if pa.types.is_integer(table.type_of(name)) and has_word(name, TIMES)
    ]
    likely = sorted(dates, key=lambda name: not has_word(name, TIMES)) + numbers
    few = ""
    for name in likely:
        times = table.rows[name].drop_nulls()
        if times.n_unique() < FEWEST_TIMES:
            few = f"{shorten(name)} has only {times.n_unique()} different values"
            continue
        kind = str(table.type_of(name)) if name in dates else "whole numbers with such a name"
        return Guess("time", name, f"{kind}, {_span(times)}")
    texts = [n for n in others if has_word(n, TIMES) and table.rows[n].dtype == pl.String]
    if texts and not few:
        few = f"{shorten(texts[0])} is text: cast it to a date to use it"
    return Guess("time", None, few or "no column has dates, or the name of a time")


def find_weight(table: SampledTable, ends: Ends, time: str | None) -> Guess:
    """The column with the weights: numbers above 0, by name."""
    why = "no column has the name of a weight"
    for name in table.rows.columns:
        kind = table.type_of(name)
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        if name in (*ends.columns, time) or not is_number or not has_word(name, WEIGHTS):
            continue
        values = table.rows[name].drop_nulls()
        bad = int((~(values.is_finite() & (values > 0))).sum())
        if bad:
            why = f"{shorten(name)} has {bad:,} values that are not above 0"
            continue
        if values.n_unique() < 2:
            why = f"{shorten(name)} is the same in all rows looked at"
            continue
        return Guess("weight", name, f"its name, and numbers {_span(values)}")
    return Guess("weight", None, why)


def find_bad_rows(table: SampledTable, ends: Ends, time: str | None, weight: str | None) -> Guess:
    """``drop`` where a run would stop at a row of the sample."""
    faults = []
    for name in (*ends.columns, time, weight):
        nulls = 0 if name is None else table.rows[name].null_count()
        if nulls:
            faults.append(f"{nulls:,} null(s) in {shorten(name)}")
    if time is not None and _is_date(table.type_of(time)):
        late = _future(table.rows[time])
        if late:
            faults.append(f"{late:,} date(s) in the future in {shorten(time)}")
    if not faults:
        return Guess("on_bad_rows", None, "no bad row in the sample")
    return Guess("on_bad_rows", "drop", f"{' and '.join(faults)} in the sample: left out, counted")


def _span(values: pl.Series) -> str:
    return f"from {values.min()!s} to {values.max()!s}"


def _is_date(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _future(dates: pl.Series) -> int:
    days = dates.cast(pl.Date)
    return int((days > datetime.now(UTC).date()).sum())
