"""Edges that are dated later than the run."""

from datetime import UTC, date, datetime, timedelta

import polars as pl
import pyarrow as pa
import pytest

from peg_core.errors import InputError
from peg_core.graph.edge_rows import Dirt, EdgeColumns, read_edges
from peg_core.graph.edge_table import list_row_groups

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DATES = [date(2020, 1, 1), date(2026, 3, 1), date(2026, 3, 2), date(2031, 7, 9)]
TIMES = [datetime(d.year, d.month, d.day, 12) for d in DATES]
ZONE = pl.Datetime("us", "Asia/Tokyo")


def read(folder, times, on_bad_rows):
    table = pl.DataFrame({"a": range(4), "b": range(1, 5), "day": times})
    table.write_parquet(folder / "edges.parquet")
    groups = list_row_groups([folder / "edges.parquet"], ["a", "b", "day"])
    columns, dirt = EdgeColumns("a", "b", time="day", latest=NOW), Dirt()
    rows = list(read_edges(groups, columns, [pa.int64()] * 2, on_bad_rows=on_bad_rows, dirt=dirt))
    return [node for batch in rows for node in batch.source.to_pylist()], dirt


@pytest.mark.parametrize(
    "times",
    [
        pl.Series(DATES),
        pl.Series(TIMES, dtype=pl.Datetime("ns")),
        pl.Series(TIMES, dtype=pl.Datetime("ms")),
        pl.Series([time + timedelta(hours=9) for time in TIMES]).dt.replace_time_zone("Asia/Tokyo"),
    ],
    ids=["date", "ns", "ms", "zone"],
)
def test_dates_that_have_not_come_stop_or_are_left_out(tmp_path, times):
    with pytest.raises(
        InputError,
        match=r"column 'day' of .* 2 date\(s\) in the future, the first, 2026-03-02.* row 2",
    ):
        read(tmp_path, times, "error")
    nodes, dirt = read(tmp_path, times, "drop")
    assert nodes == [0, 1]
    assert (dirt.rows, dirt.future_times) == (4, 2)


def test_integers_are_no_dates(tmp_path):
    nodes, dirt = read(tmp_path, pl.Series([0, 10**18, 5, 7]), "error")
    assert nodes == [0, 1, 2, 3]
    assert dirt.future_times == 0
