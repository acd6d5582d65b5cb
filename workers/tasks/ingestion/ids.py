"""Numbers for all nodes as Ray tasks: distinct ids of rows, merged range by range."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path
from typing import TypedDict

import pyarrow as pa

from peg_core.graph.edge_rows import Dirt, EdgeSource, read_edges
from peg_core.graph.edge_table import (
    RowGroup,
    read_row_group,
    require_no_nulls,
)
from peg_core.graph.ids.id_runs import (
    IdRange,
    collect_ids,
    cut_ids,
    merge_parts,
    merged_ids,
    number_ids,
    require_few,
    write_distinct,
    write_merged,
)
from peg_core.graph.ids.id_types import normalise_ids
from peg_core.graph.ids.node_ids import NodeIds
from peg_core.graph.relations import NodeKind, Relations
from workers.tasks.ingestion.request import IngestRequest, NoResult


class IdsResult(TypedDict):
    ids: int


class IdsOfKindsResult(TypedDict):
    ids: list[int]


class MergedIdsResult(TypedDict):
    nodes: int
    nodes_before: int


class IdCutsResult(TypedDict):
    ranges: int


def ids_task(
    request: IngestRequest,
    source: EdgeSource,
    groups: list[RowGroup],
    id_types: list[pa.DataType],
    outs: list[Path],
    ends: list[tuple[int, ...]],
) -> IdsOfKindsResult:
    """Distinct ids of some row groups of an edge list, kind by kind."""
    rows = read_edges(
        groups, source.columns, id_types, on_bad_rows=request.on_bad_rows, dirt=Dirt()
    )
    return {"ids": collect_ids(rows, outs, ends)}


def node_ids_task(
    groups: list[RowGroup], column: str, id_type: pa.DataType, out: Path
) -> IdsResult:
    """Distinct ids of some row groups of the node table."""
    parts = []
    for group in groups:
        table = read_row_group(group, [column])
        require_no_nulls(table, group, [column])
        parts.append(normalise_ids(table[column], id_type))
    return {"ids": write_distinct(parts, out)}


def merge_ids_task(request: IngestRequest, kind: int, parts: list[Path]) -> MergedIdsResult:
    """Number all ids of a kind; those of an earlier store keep their numbers."""
    before = _ids_before(request)
    new = merge_parts(parts, IdRange(), before=before)
    return _number(request, kind, [new], len(new), before)


def cut_ids_task(parts: list[Path], ids_per_range: int, out: Path) -> IdCutsResult:
    """Cut the ids of all parts into ranges."""
    return {"ranges": cut_ids(parts, ids_per_range, out)}


def id_range_task(request: IngestRequest, parts: list[Path], part: IdRange, out: Path) -> IdsResult:
    """One range of the ids, merged from all parts, without those of an earlier store."""
    return {"ids": write_merged(merge_parts(parts, part, before=_ids_before(request)), out)}


def number_ids_task(
    request: IngestRequest, kind: int, ranges: list[Path], count: int
) -> MergedIdsResult:
    """Number the ids of all ranges in their order, after those of an earlier store."""
    return _number(request, kind, merged_ids(ranges), count, _ids_before(request))


def kinds_task(request: IngestRequest, sizes: list[int]) -> NoResult:
    """Write what the kinds and relations of the graph are, which is known from here on.

    Args:
        sizes: Nodes of each kind.
    """
    require_few(sum(sizes))
    bounds = list(accumulate(sizes, initial=0))
    names = [kind.name for kind in request.kinds]
    kinds = [NodeKind(*each) for each in zip(names, bounds, bounds[1:], strict=False)]
    Relations(tuple(kinds), request.relations, request.predicted).save(request.out.folder)
    return {}


def _ids_before(request: IngestRequest) -> NodeIds | None:
    return request.previous.at(NodeIds).open() if request.previous else None


def _number(
    request: IngestRequest, kind: int, new: Iterable[pa.Array], count: int, before: NodeIds | None
) -> MergedIdsResult:
    nodes = number_ids(new, count, request.ids_folder(kind), before=before)
    return {"nodes": nodes, "nodes_before": len(before) if before else 0}
