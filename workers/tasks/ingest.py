"""Ingestion as Ray tasks: row groups in, a graph store out, memory bounded at every step."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import pyarrow as pa

from peg_core.graph.edge_ranges import (
    Duplicates,
    KeyRange,
    allocate,
    cut_with_graph,
    merge_range,
    place_range,
)
from peg_core.graph.edge_rows import Dirt, EdgeColumns, OnBadRows, read_edges
from peg_core.graph.edge_runs import write_runs
from peg_core.graph.edge_sides import Sides, compare_sides
from peg_core.graph.edge_table import (
    RowGroup,
    read_row_group,
    require_no_nulls,
)
from peg_core.graph.fading import Fading
from peg_core.graph.graph_store import GraphStore, load_times
from peg_core.graph.ids.id_runs import (
    IdRange,
    collect_ids,
    cut_ids,
    merge_parts,
    merged_ids,
    number_ids,
    write_distinct,
    write_merged,
)
from peg_core.graph.ids.id_types import normalise_ids
from peg_core.graph.ids.node_ids import NodeIds
from peg_core.graph.node_table import NodeColumns, write_node_table
from workers.artifact_ref import ArtifactRef


class IdsResult(TypedDict):
    ids: int


class MergedIdsResult(TypedDict):
    nodes: int
    nodes_before: int


class IdCutsResult(TypedDict):
    ranges: int


class RangesResult(TypedDict):
    ranges: list[tuple[int, int]]


class NoResult(TypedDict):
    """Nothing to tell."""


@dataclass(frozen=True)
class IngestRequest:
    """What is to be read, and where the store goes.

    Args:
        edge_files: The edge lists to read; with ``previous`` only those it has not seen.
        previous: An earlier store that the new edges are merged into.
        fading: How weights fade with time; None: they do not.
    """

    edge_files: list[str]
    columns: EdgeColumns
    duplicates: Duplicates
    on_bad_rows: OnBadRows
    nodes: str | None
    node_columns: NodeColumns
    out: ArtifactRef[GraphStore]
    previous: ArtifactRef[GraphStore] | None = None
    fading: Fading | None = None

    @property
    def work(self) -> Path:
        return self.out.folder / "work"


def ids_task(
    request: IngestRequest, groups: list[RowGroup], id_type: pa.DataType, out: Path
) -> IdsResult:
    """Distinct ids of some row groups of the edge list."""
    rows = read_edges(
        groups, request.columns, id_type, on_bad_rows=request.on_bad_rows, dirt=Dirt()
    )
    return {"ids": collect_ids(rows, out)}


def sides_task(request: IngestRequest, groups: list[RowGroup], id_type: pa.DataType) -> Sides:
    """Whether the two columns of the edge list name the same nodes."""
    return compare_sides(groups, request.columns, id_type)


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


def merge_ids_task(request: IngestRequest, parts: list[Path]) -> MergedIdsResult:
    """Number all ids; those of an earlier store keep their numbers."""
    before = _ids_before(request)
    new = merge_parts(parts, IdRange(), before=before)
    return _number(request, [new], len(new), before)


def cut_ids_task(parts: list[Path], ids_per_range: int, out: Path) -> IdCutsResult:
    """Cut the ids of all parts into ranges."""
    return {"ranges": cut_ids(parts, ids_per_range, out)}


def id_range_task(request: IngestRequest, parts: list[Path], part: IdRange, out: Path) -> IdsResult:
    """One range of the ids, merged from all parts, without those of an earlier store."""
    return {"ids": write_merged(merge_parts(parts, part, before=_ids_before(request)), out)}


def number_ids_task(request: IngestRequest, ranges: list[Path], count: int) -> MergedIdsResult:
    """Number the ids of all ranges in their order, after those of an earlier store."""
    return _number(request, merged_ids(ranges), count, _ids_before(request))


def _ids_before(request: IngestRequest) -> NodeIds | None:
    return request.previous.at(NodeIds).open() if request.previous else None


def _number(
    request: IngestRequest, new: Iterable[pa.Array], count: int, before: NodeIds | None
) -> MergedIdsResult:
    nodes = number_ids(new, count, request.out.folder, before=before)
    return {"nodes": nodes, "nodes_before": len(before) if before else 0}


def run_task(
    request: IngestRequest, groups: list[RowGroup], id_type: pa.DataType, rows: int, out: Path
) -> dict[str, Any]:
    """Sorted runs of some row groups, in folders within ``out``."""
    dirt = Dirt()
    batches = read_edges(
        groups, request.columns, id_type, on_bad_rows=request.on_bad_rows, dirt=dirt
    )
    runs = write_runs(batches, request.out.at(NodeIds).open(), dirt, rows, out)
    return {"runs": runs, **dataclasses.asdict(dirt)}


def cut_task(
    request: IngestRequest, ranges: list[KeyRange], nodes: int, entries: int
) -> RangesResult:
    """Cut ranges further where the earlier store already fills them."""
    assert request.previous is not None
    cut = cut_with_graph(ranges, request.previous.open(), nodes, entries)
    return {"ranges": [(part.first, part.last) for part in cut]}


def range_task(
    request: IngestRequest, part: KeyRange, runs: list[Path], nodes: int, out: Path
) -> dict[str, Any]:
    """One range, merged from all runs and the earlier store."""
    before = times = None
    if request.previous is not None:
        before = request.previous.open()
        times = load_times(request.previous.folder)
    return merge_range(
        part,
        runs,
        nodes,
        out,
        duplicates=request.duplicates,
        before=before,
        times_before=times,
    )


def allocate_task(
    request: IngestRequest, ranges: list[Path], facts: list[dict[str, Any]], nodes: int
) -> NoResult:
    """Make room for the arrays of the store, which all ranges fill together."""
    allocate(request.out.folder, ranges, facts, nodes, request.fading)
    return {}


def place_task(request: IngestRequest, part: Path, offset: int, newest: int = 0) -> NoResult:
    """Copy a range into the arrays of the store; ``newest`` is the time of the newest edge."""
    place_range(request.out.folder, part, offset, request.fading, newest)
    return {}


def finish_task(request: IngestRequest, groups: list[RowGroup]) -> dict[str, int]:
    """Count, and add the features."""
    graph = request.out.open()
    counts: dict[str, int] = {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "isolated_nodes": int((graph.degrees == 0).sum()),
    }
    if groups:
        node_ids = request.out.at(NodeIds).open()
        counts |= write_node_table(groups, request.node_columns, node_ids, request.out.folder)
    return counts
