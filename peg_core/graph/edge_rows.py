"""Rows of an edge list: read a batch at a time, checked, and what was wrong with them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from peg_core.errors import InputError
from peg_core.graph.edge_table import RowGroup, open_parquet, read_error
from peg_core.graph.ids.id_types import normalise_ids

BATCH_ROWS = 524_288
OnBadRows = Literal["error", "drop"]


@dataclass(frozen=True)
class EdgeColumns:
    """What the columns of an edge list are called; no date may be after ``latest``."""

    source: str
    target: str
    weight: str | None = None
    time: str | None = None
    latest: datetime | None = None

    @property
    def ends(self) -> list[str]:
        return [self.source, self.target]

    @property
    def names(self) -> list[str]:
        return [name for name in (self.source, self.target, self.weight, self.time) if name]


@dataclass(frozen=True)
class EdgeSource:
    """One edge list of a graph.

    Args:
        files: Parquet files, all with the same columns.
        columns: What they are called.
        kinds: The kinds, by their place, of the two ends.
        number: Of the relation, where the graph has relations.
        scale: What weights are multiplied by.
    """

    files: list[str]
    columns: EdgeColumns
    kinds: tuple[int, int] = (0, 0)
    number: int = 0
    scale: float = 1.0


@dataclass
class Dirt:
    """Rows read, and rows that were left out, by reason."""

    rows: int = 0
    null_ids: int = 0
    null_values: int = 0
    bad_weights: int = 0
    future_times: int = 0
    self_loops: int = 0

    def add(self, other: Dirt) -> None:
        for field in dataclasses.fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


@dataclass(frozen=True)
class EdgeRows:
    """A batch of clean rows; weights and times only where the edge list has them."""

    source: pa.Array
    target: pa.Array
    weight: npt.NDArray[np.float64] | None
    time: npt.NDArray[np.int64] | None

    @property
    def ends(self) -> tuple[pa.Array, pa.Array]:
        return self.source, self.target


def read_edges(
    groups: Sequence[RowGroup],
    columns: EdgeColumns,
    id_types: Sequence[pa.DataType],
    *,
    on_bad_rows: OnBadRows,
    dirt: Dirt,
) -> Iterator[EdgeRows]:
    """Yield the rows of the groups in bounded batches; counts go into ``dirt``.

    Args:
        id_types: Those of the two ends.
    """
    for group in groups:
        first = 0
        for table in _batches(group, columns.names):
            yield _clean(table, columns, id_types, _Location(group, first), on_bad_rows, dirt)
            first += len(table)


def require_edge_types(file: str, schema: pa.Schema, columns: EdgeColumns) -> None:
    """Refuse weights and times of a type that cannot hold them."""
    if columns.weight is not None:
        _require_number(file, columns.weight, schema.field(columns.weight).type)
    if columns.time is not None:
        _require_time(file, columns.time, schema.field(columns.time).type)


def _require_number(file: str, name: str, kind: pa.DataType) -> None:
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind)):
        raise InputError.wrong_type(file, name, found=kind, needed="a number")


def _require_time(file: str, name: str, kind: pa.DataType) -> None:
    if not (pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        raise InputError.wrong_type(file, name, found=kind, needed="an integer or timestamp")


@dataclass(frozen=True)
class _Location:
    """Where a batch starts, to name rows in errors."""

    group: RowGroup
    first: int

    def row(self, row: int) -> str:
        return f"row {self.first + row:,} of row group {self.group.index}"


def _batches(group: RowGroup, columns: list[str]) -> Iterator[pa.Table]:
    try:
        for batch in open_parquet(group.file).iter_batches(
            BATCH_ROWS, row_groups=[group.index], columns=columns, use_threads=False
        ):
            yield pa.Table.from_batches([batch])
    except (pa.ArrowException, OSError) as error:
        raise read_error(group.file, error) from error


def _clean(
    table: pa.Table,
    columns: EdgeColumns,
    id_types: Sequence[pa.DataType],
    location: _Location,
    on_bad_rows: OnBadRows,
    dirt: Dirt,
) -> EdgeRows:
    dirt.rows += len(table)
    for names, counter in ((columns.ends, "null_ids"), (columns.names[2:], "null_values")):
        table = _without_nulls(table, names, counter, location, on_bad_rows, dirt)
    if columns.time and columns.latest:
        table = _without_future(table, columns.time, columns.latest, location, on_bad_rows, dirt)
    weight = None
    if columns.weight:
        table, weight = _with_good_weights(table, columns.weight, location, on_bad_rows, dirt)
    time = _timestamps(table[columns.time], location, columns.time) if columns.time else None
    ends = [
        _ids(table[name], id_type, location, name)
        for name, id_type in zip(columns.ends, id_types, strict=True)
    ]
    return EdgeRows(ends[0], ends[1], weight, time)


def _ids(column: pa.ChunkedArray, id_type: pa.DataType, location: _Location, name: str) -> pa.Array:
    try:
        return normalise_ids(column, id_type)
    except pa.ArrowInvalid as error:
        raise InputError(
            f"column {name!r} of {location.group.file} holds an id that does not fit {id_type} "
            f"({error}); signed and unsigned ids are mixed: cast the columns to one type"
        ) from error


def _without_nulls(
    table: pa.Table,
    names: Sequence[str],
    counter: str,
    location: _Location,
    on_bad_rows: OnBadRows,
    dirt: Dirt,
) -> pa.Table:
    for name in names:
        count = table[name].null_count
        if not count:
            continue
        if on_bad_rows == "error":
            row = pc.index(table[name].is_null(), True).as_py()
            raise InputError.null_value(
                location.group.file,
                name,
                row_group=location.group.index,
                row=location.first + row,
                count=count,
            )
        setattr(dirt, counter, getattr(dirt, counter) + count)
        table = table.filter(table[name].is_valid())
    return table


def _with_good_weights(
    table: pa.Table, name: str, location: _Location, on_bad_rows: OnBadRows, dirt: Dirt
) -> tuple[pa.Table, npt.NDArray[np.float64]]:
    _require_number(location.group.file, name, table[name].type)
    weights = np.asarray(table[name].cast(pa.float64()).combine_chunks())
    bad = ~(np.isfinite(weights) & (weights > 0))
    if not bad.any():
        return table, weights
    if on_bad_rows == "error":
        row = int(bad.argmax())
        raise InputError(
            f"column {name!r} of {location.group.file} holds the weight {weights[row]} in "
            f"{location.row(row)}; weights must be finite and above 0: mend {int(bad.sum()):,} "
            "such row(s), or set `graph.on_bad_rows: drop`"
        )
    dirt.bad_weights += int(bad.sum())
    return table.filter(pa.array(~bad)), weights[~bad]


def _without_future(
    table: pa.Table,
    name: str,
    latest: datetime,
    location: _Location,
    on_bad_rows: OnBadRows,
    dirt: Dirt,
) -> pa.Table:
    """Rows whose date has come; integers are no dates."""
    kind = table[name].type
    if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        return table
    # times without a zone count as UTC
    limit = pa.scalar(latest.replace(tzinfo=None), pa.timestamp("us"))
    dates = table[name]
    if pa.types.is_timestamp(kind):
        dates = dates.cast(pa.timestamp(kind.unit))
    late = pc.greater(dates.cast(pa.timestamp("us"), safe=False), limit)
    count = pc.sum(late).as_py() or 0
    if not count:
        return table
    if on_bad_rows == "error":
        row = pc.index(late, True).as_py()
        raise InputError(
            f"column {name!r} of {location.group.file} holds {count:,} date(s) in the future, the "
            f"first, {table[name][row].as_py()}, in {location.row(row)}; mend the dates or this "
            "machine's clock, or set `graph.on_bad_rows: drop`"
        )
    dirt.future_times += count
    return table.filter(pc.invert(late))


def _timestamps(column: pa.ChunkedArray, location: _Location, name: str) -> npt.NDArray[np.int64]:
    _require_time(location.group.file, name, column.type)
    if pa.types.is_date32(column.type):
        column = column.cast(pa.date64())
    values: npt.NDArray[Any] = np.asarray(column.cast(pa.int64()).combine_chunks())
    return values
