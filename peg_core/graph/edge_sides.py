"""Whether the two columns of an edge list name the same nodes, or two kinds of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import polars as pl
import pyarrow as pa

from peg_core.graph.edge_rows import EdgeColumns
from peg_core.graph.edge_table import RowGroup, open_parquet
from peg_core.graph.ids.id_types import normalise_ids

# Rows that are looked at; of more, some of every row group.
MOST_ROWS = 2**20
# With fewer rows it may be chance that no node stands on both sides.
FEWEST_ROWS = 100


class Sides(TypedDict):
    """Rows that were looked at, different nodes in each column, and nodes in both."""

    rows: int
    sources: int
    targets: int
    both: int


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
        return {"rows": 0, "sources": 0, "targets": 0, "both": 0}
    source, target = (pl.concat(side, how="vertical").unique() for side in sides)
    both = int(source.is_in(target.implode()).sum())
    return {"rows": rows, "sources": len(source), "targets": len(target), "both": both}


def look_bipartite(sides: Sides) -> bool:
    """Whether no node stands in both columns."""
    return sides["rows"] >= FEWEST_ROWS and sides["both"] == 0
