"""Ingestion as Ray tasks: row groups in, a graph store out, memory bounded at every step."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, TypedDict

import pyarrow as pa

from peg_core.graph.edge_ranges import (
    KeyRange,
    allocate,
    cut_with_graph,
    merge_range,
    place_range,
)
from peg_core.graph.edge_rows import Dirt, EdgeSource, read_edges
from peg_core.graph.edge_runs import write_runs
from peg_core.graph.edge_sides import Sides, compare_sides
from peg_core.graph.edge_table import RowGroup
from peg_core.graph.graph_store import load_times
from peg_core.graph.ids.graph_ids import GraphIds
from peg_core.graph.kind_counts import count_kinds
from peg_core.graph.node_table import KindTable, write_node_tables
from workers.tasks.ingestion.request import IngestRequest, NoResult


class RangesResult(TypedDict):
    ranges: list[tuple[int, int]]


def sides_task(source: EdgeSource, groups: list[RowGroup], id_type: pa.DataType) -> Sides:
    """Whether the two columns of the edge list name the same nodes."""
    return compare_sides(groups, source.columns, id_type)


def run_task(
    request: IngestRequest,
    source: EdgeSource,
    groups: list[RowGroup],
    id_types: list[pa.DataType],
    rows: int,
    out: Path,
) -> dict[str, Any]:
    """Sorted runs of some row groups, in folders within ``out``."""
    dirt = Dirt()
    batches = read_edges(
        groups, source.columns, id_types, on_bad_rows=request.on_bad_rows, dirt=dirt
    )
    ids = request.out.at(GraphIds).open()
    ends = [ids.kinds[kind] for kind in source.kinds], len(ids)
    runs = write_runs(batches, ends, request.run_columns(source), dirt, rows, out)
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
        relations=request.graph_relations,
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


def finish_task(request: IngestRequest, groups: list[list[RowGroup]]) -> dict[str, int]:
    """Count, and add what the node tables say.

    Args:
        groups: Of the node table of each kind, empty where it has none.
    """
    graph = request.out.open()
    counts: dict[str, int] = {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "isolated_nodes": int((graph.degrees == 0).sum()),
    }
    if graph.relations is not None:
        counts |= count_kinds(graph)
    tables = [
        KindTable(own, kind.columns, ids.ids, ids.first)
        for own, kind, ids in zip(
            groups, request.kinds, request.out.at(GraphIds).open().kinds, strict=True
        )
    ]
    if any(groups):
        counts |= write_node_tables(tables, request.out.folder)
    return counts
