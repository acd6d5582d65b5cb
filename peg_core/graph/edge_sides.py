"""Whether the two columns of an edge list name the same nodes, or two kinds of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from peg_core.graph.edge_rows import EdgeColumns
from peg_core.graph.edge_table import RowGroup, open_parquet
from peg_core.graph.ids.id_types import normalise_ids

# Rows that are looked at; of more, some of every row group.
MOST_ROWS = 2**20
# With fewer rows it may be chance that no node stands on both sides.
FEWEST_ROWS = 100
# Share of the smaller side that may stand on both sides by mistake, where all rows are known.
MOST_ON_BOTH = 0.01
# Share of the integers of a column that lie beyond all of the other column; ends of links
# between nodes of one kind are from one range.
MOST_OUTSIDE = 0.2


class Sides(TypedDict):
    """Rows that were looked at, different nodes in each column, and nodes in both.

    ``whole`` says whether these were all rows; ``outside`` are the integers of one column beyond
    all of the other one, of the column that has more of them; 0 where ids are no integers.
    """

    rows: int
    whole: bool
    sources: int
    targets: int
    both: int
    outside: int


def compare_sides(groups: Sequence[RowGroup], columns: EdgeColumns, id_type: pa.DataType) -> Sides:
    """Count the nodes of each column in a sample of the rows."""
    share = max(1, MOST_ROWS // max(len(groups), 1))
    step = max(1, -(-len(groups) // MOST_ROWS))
    sides: list[list[pl.Series]] = [[], []]
    rows = 0
    for group in groups[::step]:
        batches = open_parquet(group.file).iter_batches(
            share, row_groups=[group.index], columns=columns.ends, use_threads=False
        )
        batch = next(batches, None)
        if batch is None:
            continue
        rows += len(batch)
        for side, name in zip(sides, columns.ends, strict=True):
            ids = normalise_ids(batch[name], id_type)
            side.append(pl.Series(ids).drop_nulls().unique())
    if not rows:
        return Sides(rows=0, whole=True, sources=0, targets=0, both=0, outside=0)
    source, target = (pl.concat(side, how="vertical").unique() for side in sides)
    ranges = _whole_ranges(groups, columns)
    return Sides(
        rows=rows,
        whole=rows == sum(group.rows for group in groups),
        sources=len(source),
        targets=len(target),
        both=int(source.is_in(target.implode()).sum()),
        outside=max(_outside(source, ranges[1]), _outside(target, ranges[0])),
    )


def look_bipartite(sides: Sides) -> bool:
    """Whether no node stands in both columns, or so few that it may be a mistake."""
    smaller = min(sides["sources"], sides["targets"])
    most = MOST_ON_BOTH * smaller if sides["whole"] else 0
    return sides["rows"] >= FEWEST_ROWS and sides["both"] <= most


def lie_apart(sides: Sides) -> bool:
    """Whether many integers of one column lie beyond all of the other, as if counted apart."""
    larger = max(sides["sources"], sides["targets"])
    return sides["rows"] >= FEWEST_ROWS and sides["outside"] > MOST_OUTSIDE * larger


def _whole_ranges(groups: Sequence[RowGroup], columns: EdgeColumns) -> list[tuple[int, int] | None]:
    """Smallest and largest integer of each column in all rows, where the files say them."""
    numbers: dict[str, list[int]] = {}
    for group in groups:
        numbers.setdefault(group.file, []).append(group.index)
    found: list[list[tuple[int, int] | None]] = [[], []]
    for file, indices in numbers.items():
        metadata = open_parquet(file).metadata
        for ranges, name in zip(found, columns.ends, strict=True):
            column = metadata.schema.names.index(name)
            ranges += [_stored_range(metadata.row_group(i).column(column)) for i in indices]
    return [_union(ranges) for ranges in found]


def _stored_range(column: pq.ColumnChunkMetaData) -> tuple[int, int] | None:
    facts = column.statistics
    if facts is None or not facts.has_min_max or not isinstance(facts.min, int):
        return None
    return facts.min, facts.max


def _union(ranges: list[tuple[int, int] | None]) -> tuple[int, int] | None:
    known = [found for found in ranges if found is not None]
    if not known or len(known) < len(ranges):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _outside(ids: pl.Series, span: tuple[int, int] | None) -> int:
    """How many integers lie beyond a range."""
    if span is None or not ids.dtype.is_integer():
        return 0
    return int((~ids.is_between(*span)).sum())
