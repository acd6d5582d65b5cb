"""Ways to damage the columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from tests.faults.bad_inputs.kind import Make
from tests.faults.bad_inputs.place import NUM_NODES, Place


def change(file: Path, **columns: Any) -> None:
    """Write a table again with other columns."""
    pl.read_parquet(file).with_columns(**columns).write_parquet(file)


def with_first(column: str, value: Any) -> pl.Expr:
    """The column with another value in its first row."""
    return pl.when(pl.int_range(pl.len()) == 0).then(pl.lit(value)).otherwise(column)


def edge_column(name: str, values: Any, **graph: Any) -> Make:
    """A column of the edges becomes another."""

    def make(place: Place) -> None:
        change(place.edges, **{name: values})
        place.settings["graph"].update(graph)

    return make


def times(values: Any) -> Make:
    """A split by time meets these values."""

    def make(place: Place) -> None:
        edge_column("time", values, time="time")(place)
        place.settings["split"]["by"] = "time"

    return make


def candidate_column(name: str, values: Any, **score: Any) -> Make:
    """A column of the candidates becomes another."""

    def make(place: Place) -> None:
        change(place.candidates, **{name: values})
        place.settings["score"].update(score)

    return make


def node_column(name: str, values: Any) -> Make:
    """A column of the node table becomes another."""
    return lambda place: change(place.nodes, **{name: values})


def features(values: Sequence[Any], kind: pa.DataType | None = None, **graph: Any) -> Make:
    """The node table has these features; the values are repeated for all nodes."""

    def make(place: Place) -> None:
        repeated = [values[i % len(values)] for i in range(NUM_NODES)]
        column = pa.array(repeated, type=kind)
        pq.write_table(pa.table({"id": range(NUM_NODES), "x": column}), place.nodes)
        place.settings["graph"].update(graph)

    return make


def without_column(table: str, column: str, **graph: Any) -> Make:
    """A column is gone, though the settings name it."""

    def make(place: Place) -> None:
        file = place.folder / f"{table}.parquet"
        pl.read_parquet(file).drop(column).write_parquet(file)
        place.settings["graph"].update(graph)

    return make


def column_twice(table: str, column: str) -> Make:
    """Two columns of the same name."""

    def make(place: Place) -> None:
        file = place.folder / f"{table}.parquet"
        found = pq.read_table(file)
        pq.write_table(found.append_column(column, found[column]), file)

    return make


def ids_as(rewrite: Any, *, tables: str = "edges nodes candidates") -> Make:
    """The ids of some tables are written in another way."""

    def make(place: Place) -> None:
        for table, names in (
            ("edges", ("src", "dst")),
            ("nodes", ("id",)),
            ("candidates", ("src", "dst")),
        ):
            if table in tables:
                file = place.folder / f"{table}.parquet"
                change(file, **{name: rewrite(pl.col(name)) for name in names})

    return make
