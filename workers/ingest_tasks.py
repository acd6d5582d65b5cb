"""Ingestion as Ray tasks: row groups in, a graph store out."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from peg_core.errors import InputError
from peg_core.graph.edge_exchange import (
    EdgeColumns,
    build_range,
    collect_ids,
    exchange_edges,
    join_ranges,
    merge_ids,
)
from peg_core.graph.edge_table import (
    RowGroup,
    check_id_columns,
    find_parquet_files,
    list_row_groups,
)
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.node_features import write_features
from peg_core.graph.node_ids import NodeIds
from workers.cluster import Cluster
from workers.task_map import Result, Shard, TaskProgress, task_map

# What one edge costs while it is looked up, copied for both directions and sorted.
BYTES_PER_EDGE = 200
MAX_RANGES = 2**16

Notify = Callable[[float, float, str], None]


@dataclass(frozen=True)
class IngestRequest:
    """What is to be read, and where the store goes."""

    edges: str
    columns: EdgeColumns
    nodes: str | None
    node_id: str
    features: str | None
    folder: Path


def ingest(cluster: Cluster, request: IngestRequest, notify: Notify) -> Result:
    """Read, number, exchange, sort; returns the counts for the manifest."""
    edge_files = find_parquet_files(request.edges)
    edge_groups = list_row_groups(edge_files, request.columns.names)
    if not edge_groups:
        raise InputError.no_rows(request.edges, "edges")
    is_text = check_id_columns(edge_files, request.columns.ends)
    node_groups = _node_groups(request, is_text=is_text)
    rows_per_task = max(1, cluster.settings.task_memory_bytes // BYTES_PER_EDGE)
    work = request.folder / "work"

    def step(number: int, note: str) -> Callable[[TaskProgress], None]:
        return lambda p: notify(number + p.done / p.total, 5, f"{note} {p.done}/{p.total}")

    _number_nodes(cluster, request, edge_groups, node_groups, rows_per_task, step(0, "ids"))
    batches = _batches(edge_groups, rows_per_task)
    num_ranges = min(MAX_RANGES, math.ceil(2 * sum(g.rows for g in edge_groups) / rows_per_task))
    exchanges = task_map(
        cluster,
        exchange_task,
        [
            Shard(f"{name}-of-{num_ranges}", {"request": request, "groups": batch,
                                              "num_ranges": num_ranges, "name": name})
            for name, batch in batches
        ],
        markers=work / "exchange",
        on_progress=step(1, "edges"),
    )  # fmt: skip
    ranges = task_map(
        cluster,
        range_task,
        [
            Shard(f"range-{index}-of-{num_ranges}", {"request": request, "exchanges": exchanges,
                                                     "index": index, "num_ranges": num_ranges})
            for index in range(num_ranges)
        ],
        markers=work / "ranges",
        on_progress=step(2, "sort"),
    )  # fmt: skip
    last = task_map(
        cluster,
        join_task,
        [Shard("join", {"request": request, "num_ranges": num_ranges, "groups": node_groups})],
        markers=work / "join",
        on_progress=step(3, "write"),
    )
    shutil.rmtree(work)
    return _counts(exchanges, ranges, last[0])


def ids_task(groups: list[RowGroup], columns: list[str], out: str) -> Result:
    """Distinct ids of some row groups."""
    return {"rows": collect_ids(groups, columns, Path(out)), "out": out}


def merge_task(parts: list[str], folder: str) -> Result:
    """Number all ids."""
    return {"nodes": merge_ids([Path(part) for part in parts], Path(folder))}


def exchange_task(
    request: IngestRequest, groups: list[RowGroup], num_ranges: int, name: str
) -> Result:
    """Send the edges of some row groups to the ranges of their ends."""
    node_ids = NodeIds.open(request.folder)
    out = request.folder / "work" / "exchange" / f"{name}-of-{num_ranges}"
    cuts = _cuts(len(node_ids), num_ranges)
    return {**exchange_edges(groups, request.columns, node_ids, cuts, out), "out": str(out)}


def range_task(
    request: IngestRequest, exchanges: list[Result], index: int, num_ranges: int
) -> Result:
    """Sort one range of rows."""
    num_nodes = len(NodeIds.open(request.folder))
    cuts = _cuts(num_nodes, num_ranges)
    parts = [
        (Path(done["out"]), done["offsets"][index], done["offsets"][index + 1])
        for done in exchanges
    ]
    out = _range_folder(request, index, num_ranges)
    entries = build_range(parts, int(cuts[index]), int(cuts[index + 1]), num_nodes, out)
    return {"entries": entries}


def join_task(request: IngestRequest, num_ranges: int, groups: list[RowGroup]) -> Result:
    """Put the ranges together and add the features."""
    folders = [_range_folder(request, index, num_ranges) for index in range(num_ranges)]
    join_ranges(folders, request.folder)
    graph = GraphStore.open(request.folder)
    counts: Result = {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "isolated_nodes": int((graph.degrees == 0).sum()),
    }
    if request.features:
        node_ids = NodeIds.open(request.folder)
        counts |= write_features(
            groups,
            id_column=request.node_id,
            column=request.features,
            node_ids=node_ids,
            out=request.folder / "features.npy",
        )
    return counts


def _number_nodes(
    cluster: Cluster,
    request: IngestRequest,
    edge_groups: list[RowGroup],
    node_groups: list[RowGroup],
    rows_per_task: int,
    on_progress: Callable[[TaskProgress], None],
) -> None:
    folder = request.folder / "work" / "ids"
    sources = [
        ("edges", edge_groups, request.columns.ends),
        ("nodes", node_groups, [request.node_id]),
    ]
    shards = [
        Shard(f"{kind}-{name}", {"groups": batch, "columns": columns,
                                 "out": str(folder / f"{kind}-{name}.parquet")})
        for kind, groups, columns in sources
        for name, batch in _batches(groups, rows_per_task)
    ]  # fmt: skip
    parts = task_map(cluster, ids_task, shards, markers=folder, on_progress=on_progress)
    arguments = {"parts": [part["out"] for part in parts], "folder": str(request.folder)}
    task_map(cluster, merge_task, [Shard("merged", arguments)], markers=folder)


def _node_groups(request: IngestRequest, *, is_text: bool) -> list[RowGroup]:
    """Row groups of the node table, checked against the edges' kind of id."""
    if request.nodes is None:
        return []
    files = find_parquet_files(request.nodes)
    columns = [request.node_id, *([request.features] if request.features else [])]
    groups = list_row_groups(files, columns)
    if not groups:
        raise InputError.no_rows(request.nodes, "nodes")
    if check_id_columns(files, [request.node_id]) != is_text:
        kinds = ("strings", "integers") if is_text else ("integers", "strings")
        raise InputError(
            f"ids are {kinds[0]} in {request.edges} and {kinds[1]} in {request.nodes}; "
            "both tables need the same kind: cast one of them"
        )
    return groups


def _batches(groups: Sequence[RowGroup], rows_per_task: int) -> list[tuple[str, list[RowGroup]]]:
    """Consecutive row groups of about ``rows_per_task`` rows, named by what they hold."""
    batches: list[tuple[str, list[RowGroup]]] = []
    current: list[RowGroup] = []
    first = 0
    for place, group in enumerate(groups):
        current.append(group)
        if sum(g.rows for g in current) >= rows_per_task or place == len(groups) - 1:
            batches.append((f"{first}-{place}", current))
            current, first = [], place + 1
    return batches


def _cuts(num_nodes: int, num_ranges: int) -> Any:
    return np.linspace(0, num_nodes, num_ranges + 1).astype(np.int64)


def _range_folder(request: IngestRequest, index: int, num_ranges: int) -> Path:
    return request.folder / "work" / "ranges" / f"{index}-of-{num_ranges}"


def _counts(exchanges: list[Result], ranges: list[Result], last: Result) -> Result:
    rows = sum(done["rows"] for done in exchanges)
    loops = sum(done["self_loops"] for done in exchanges)
    every = [*exchanges, *ranges, last]
    counts = {key: value for key, value in last.items() if key != "peak_memory_bytes"}
    return {
        "rows": rows,
        **counts,
        "self_loops": loops,
        "duplicates": rows - loops - last["edges"],
        "peak_memory_bytes": max(done["peak_memory_bytes"] for done in every),
    }
