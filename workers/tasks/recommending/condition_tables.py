"""Tables of nodes that may be recommended and of pairs that may not, looked up by Ray tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np
import pyarrow as pa

from peg_core.atomic_file import write_array
from peg_core.errors import InputError
from peg_core.graph.edge_table import (
    find_id_type,
    find_parquet_files,
    list_row_groups,
    read_row_group,
)
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.graph_ids import GraphIds
from peg_core.graph.ids.id_types import normalise_ids
from peg_core.graph.ids.wrong_kind import require_kind
from peg_core.inference.conditions import Conditions, pair_keys
from peg_core.inference.list_side import ListSide
from workers.artifact_ref import ArtifactRef


class ConditionResult(TypedDict):
    """Distinct nodes or pairs of a table, and rows with an id that the graph does not have."""

    known: int
    unknown: int


@dataclass(frozen=True)
class ConditionFiles:
    """Conditions as tasks find them; None where there are none.

    Args:
        allowed: ``.npy``, which nodes may be recommended, [num_nodes].
        excluded: ``.npy``, keys of the pairs that may not, sorted.
    """

    allowed: Path | None = None
    excluded: Path | None = None

    def open(self) -> Conditions:
        return Conditions(
            None if self.allowed is None else np.load(self.allowed, mmap_mode="r"),
            None if self.excluded is None else np.load(self.excluded, mmap_mode="r"),
        )


NO_CONDITIONS = ConditionFiles()


def allowed_task(
    nodes: ArtifactRef[GraphIds], table: str, column: str, side: ListSide, out: Path
) -> ConditionResult:
    """Write which nodes may be recommended.

    Args:
        side: Whose partners the table names.
        out: ``.npy`` file that gets a flag for every node; those of other kinds are free.
    """
    ids, rows = nodes.open(), slice(side.partners.first, side.partners.last)
    kind = side.ids(ids)[1]
    allowed = np.ones(len(ids), dtype=np.bool_)
    allowed[rows] = False
    count = unknown = 0
    for (found,) in _read(table, (column,)):
        index = kind.lookup(found)
        count, unknown = count + len(index), unknown + int((index < 0).sum())
        allowed[index[index >= 0]] = True
        last = found
    if count == unknown:
        require_kind(ids, kind, last, column=column, location=table)
        raise InputError(
            f"none of the {count:,} ids in {table} is a node of the graph, nothing may be "
            f"recommended; check that {column!r} holds the ids that the edges use"
        )
    write_array(out, allowed)
    return {"known": int(allowed[rows].sum()), "unknown": unknown}


def excluded_task(
    graph: ArtifactRef[GraphStore], table: str, columns: tuple[str, str], out: Path
) -> ConditionResult:
    """Write which pairs are never recommended, as keys; where links have no direction, both ways.

    Args:
        columns: With the source of the link, and with its target.
    """
    ids, opened = graph.at(GraphIds).open(), graph.open()
    keys, unknown = [np.zeros(0, dtype=np.int64)], 0
    for found in _read(table, columns):
        ends = []
        for kind, values, column in zip(ids.ends, found, columns, strict=True):
            require_kind(ids, kind, values, column=column, location=table)
            ends.append(kind.lookup(values))
        known = (ends[0] >= 0) & (ends[1] >= 0)
        unknown += int((~known).sum())
        source, target = ends[0][known], ends[1][known]
        keys.append(pair_keys(source, target, num_nodes=opened.num_nodes))
        if not opened.is_directed:
            keys.append(pair_keys(target, source, num_nodes=opened.num_nodes))
    whole = np.unique(np.concatenate(keys))
    write_array(out, whole)
    return {"known": len(whole) if opened.is_directed else len(whole) // 2, "unknown": unknown}


def _read(table: str, columns: tuple[str, ...]) -> Iterator[list[pa.Array]]:
    """The ids of a table, a row group at a time."""
    groups = list_row_groups(find_parquet_files(table), columns)
    if not groups:
        raise InputError.no_rows(table, "rows")
    for column in columns:
        find_id_type((group.file, [column]) for group in groups)
    for group in groups:
        rows = read_row_group(group, columns)
        yield [normalise_ids(rows[column]) for column in columns]
