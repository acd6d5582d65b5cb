"""The nodes that are recommended for, as a Ray task looks them up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np
import numpy.typing as npt

from peg_core.atomic_file import atomic_path
from peg_core.errors import InputError
from peg_core.graph.edge_table import (
    find_id_type,
    find_parquet_files,
    list_row_groups,
    read_row_group,
)
from peg_core.graph.ids.graph_ids import GraphIds
from peg_core.graph.ids.id_types import normalise_ids
from peg_core.graph.ids.wrong_kind import require_kind
from peg_core.inference.list_side import ListSide
from peg_core.mapped_array import new_mapped_array
from workers.artifact_ref import ArtifactRef

NODES_PER_WRITE = 2**20


class AskedResult(TypedDict):
    """Nodes that are asked for, and ids that are none."""

    nodes: int
    unknown: int


@dataclass(frozen=True)
class AskedNodes:
    """Who is recommended for.

    Args:
        table: Parquet with their ids in ``column``; None: every node.
        refuse_unknown: End with an error at an id that is no node.
        nodes: The ids of the graph.
        out: ``.npy`` file that gets their indices, each once, in the order of the table.
        side: Which nodes can be asked for.
    """

    table: str | None
    column: str
    refuse_unknown: bool
    nodes: ArtifactRef[GraphIds]
    out: Path
    side: ListSide


def asked_task(wanted: AskedNodes) -> AskedResult:
    """Look up the nodes that are asked for."""
    if wanted.table is None:
        first, last = wanted.side.partners.first_anchor, wanted.side.partners.last_anchor
        steps = range(first, last, NODES_PER_WRITE)
        _write_asked(
            wanted.out, last - first, (np.arange(a, min(a + NODES_PER_WRITE, last)) for a in steps)
        )
        return {"nodes": last - first, "unknown": 0}
    ids = wanted.nodes.open()
    kind = wanted.side.ids(ids)[0]
    groups = list_row_groups(find_parquet_files(wanted.table), [wanted.column])
    if not groups:
        raise InputError.no_rows(wanted.table, "nodes")
    find_id_type((group.file, [wanted.column]) for group in groups)
    parts: list[npt.NDArray[np.int64]] = []
    seen = np.zeros(len(ids), dtype=np.bool_)
    rows = unknown = 0
    for group in groups:
        column = read_row_group(group, [wanted.column])[wanted.column]
        index = kind.lookup(normalise_ids(column))
        if wanted.refuse_unknown and (index < 0).any():
            row = int((index < 0).argmax())
            raise InputError(
                f"column {wanted.column!r} of {group.file} names the node {column[row]} in row "
                f"{row:,} of row group {group.index}, the graph has no such node; remove it, or "
                "set `recommend.on_unknown: drop`"
            )
        rows, unknown = rows + len(index), unknown + int((index < 0).sum())
        parts.append(_new_nodes(index[index >= 0], seen))
    if rows == unknown:
        require_kind(ids, kind, column, column=wanted.column, location=wanted.table)
        raise InputError(
            f"none of the {rows:,} ids in {wanted.table} is a node of the graph; "
            f"check that {wanted.column!r} holds the ids that the edges use"
        )
    count = sum(map(len, parts))
    _write_asked(wanted.out, count, parts)
    return {"nodes": count, "unknown": unknown}


def _new_nodes(nodes: npt.NDArray[np.int64], seen: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Those that were not seen before, each once, in their order; now they were."""
    _, first = np.unique(nodes, return_index=True)
    new = nodes[np.sort(first)]
    new = new[~seen[new]]
    seen[new] = True
    return new


def _write_asked(file: Path, count: int, parts: Iterable[npt.NDArray[np.int64]]) -> None:
    """All parts in one file, without a copy of them in memory."""
    with atomic_path(file) as temporary:
        whole = new_mapped_array(temporary, (count,), np.int64)
        first = 0
        for part in parts:
            whole[first : first + len(part)] = part
            first += len(part)
        whole.flush()
