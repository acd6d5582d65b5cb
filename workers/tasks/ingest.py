"""Ingestion as Ray tasks: row groups in, a graph store out, memory bounded at every step."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from peg_core.errors import InputError
from peg_core.graph.edge_ranges import (
    Duplicates,
    KeyRange,
    allocate,
    cut_ranges,
    cut_with_graph,
    merge_range,
    place_range,
)
from peg_core.graph.edge_rows import Dirt, EdgeColumns, OnBadRows, read_edges
from peg_core.graph.edge_runs import collect_ids, merge_ids, write_distinct, write_runs
from peg_core.graph.edge_table import (
    RowGroup,
    find_id_type,
    find_parquet_files,
    list_row_groups,
    read_row_group,
    require_no_nulls,
)
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.id_types import normalise_ids
from peg_core.graph.node_ids import NodeIds
from peg_core.graph.node_table import NodeColumns, write_node_table
from workers.cluster import Cluster
from workers.task_map import Result, Shard, Task, TaskProgress, task_map

# What one row costs at most while it is read, looked up, mirrored and sorted.
BYTES_PER_ROW = 200
BYTES_PER_WEIGHTED_ROW = 320
# Small enough for an even load and for progress that moves.
MAX_ROWS_PER_TASK = 5_000_000

Notify = Callable[[float, float, str], None]


@dataclass(frozen=True)
class IngestRequest:
    """What is to be read, and where the store goes.

    Args:
        edge_files: The edge lists to read; with ``previous`` only those it has not seen.
        previous: An earlier store that the new edges are merged into.
    """

    edge_files: list[str]
    columns: EdgeColumns
    duplicates: Duplicates
    on_bad_rows: OnBadRows
    nodes: str | None
    node_columns: NodeColumns
    folder: Path
    previous: Path | None = None

    @property
    def work(self) -> Path:
        return self.folder / "work"


@dataclass
class _Ingestion:
    """One ingestion: its inputs, its tasks, and how far it is."""

    cluster: Cluster
    request: IngestRequest
    notify: Notify
    edge_groups: list[RowGroup]
    node_groups: list[RowGroup]
    id_type: pa.DataType
    finished_steps: int = 0
    peak_memory_bytes: int = 0

    @property
    def rows_per_task(self) -> int:
        columns = self.request.columns
        cost = BYTES_PER_WEIGHTED_ROW if columns.weight or columns.time else BYTES_PER_ROW
        return max(1, min(MAX_ROWS_PER_TASK, self.cluster.settings.task_memory_bytes // cost))

    def map(self, task: Task, shards: list[Shard], name: str) -> list[Result]:
        def on_progress(p: TaskProgress) -> None:
            note = f"{name} {p.done}/{p.total}"
            self.notify(self.finished_steps + p.done / max(p.total, 1), 5, note)

        results = task_map(
            self.cluster, task, shards, markers=self.request.work / name, on_progress=on_progress
        )
        self.finished_steps += 1
        self.peak_memory_bytes = max(
            [self.peak_memory_bytes, *(done["peak_memory_bytes"] for done in results)]
        )
        return results


def ingest(cluster: Cluster, request: IngestRequest, notify: Notify) -> Result:
    """Read, number, sort, merge; returns the counts for the manifest."""
    work = _prepare(cluster, request, notify)
    id_rows = _number_nodes(work)
    sorted_rows = work.map(run_task, _run_shards(work, id_rows["nodes"]), "sort")
    runs = [run for done in sorted_rows for run in done["runs"]]
    ranges = _cut(work, runs, id_rows["nodes"])
    merged = work.map(range_task, _range_shards(work, runs, ranges, id_rows["nodes"]), "merge")
    folders = [Path(done["out"]) for done in merged]
    allocate(request.folder, folders, merged, id_rows["nodes"])
    offsets = np.cumsum([0, *(done["entries"] for done in merged)])
    work.map(
        place_task,
        [
            Shard(f"{folder.name}", {"folder": str(request.folder), "part": str(folder),
                                     "offset": int(offset)})
            for folder, offset in zip(folders, offsets, strict=False)
        ],
        "write",
    )  # fmt: skip
    last = work.map(
        finish_task, [Shard("finish", {"request": request, "groups": work.node_groups})], "finish"
    )
    shutil.rmtree(request.work)
    counts = _counts(sorted_rows, merged, last[0])
    if request.previous is not None:
        counts["edges_before"] = GraphStore.open(request.previous).num_edges
        distinct = sum(done["new"] for done in merged) // 2
        counts["already_known"] = distinct - (counts["edges"] - counts["edges_before"])
    return {**counts, "peak_memory_bytes": work.peak_memory_bytes}


def ids_task(
    request: IngestRequest, groups: list[RowGroup], id_type: pa.DataType, out: str
) -> Result:
    """Distinct ids of some row groups of the edge list."""
    rows = read_edges(
        groups, request.columns, id_type, on_bad_rows=request.on_bad_rows, dirt=Dirt()
    )
    return {"ids": collect_ids(rows, Path(out)), "out": out}


def node_ids_task(groups: list[RowGroup], column: str, id_type: pa.DataType, out: str) -> Result:
    """Distinct ids of some row groups of the node table."""
    parts = []
    for group in groups:
        table = read_row_group(group, [column])
        require_no_nulls(table, group, [column])
        parts.append(normalise_ids(table[column], id_type))
    return {"ids": write_distinct(parts, Path(out)), "out": out}


def merge_ids_task(request: IngestRequest, parts: list[str]) -> Result:
    """Number all ids; those of an earlier store keep their numbers."""
    before = NodeIds.open(request.previous) if request.previous else None
    nodes = merge_ids([Path(part) for part in parts], request.folder, before=before)
    return {"nodes": nodes, "nodes_before": len(before) if before else 0}


def run_task(
    request: IngestRequest, groups: list[RowGroup], id_type: pa.DataType, rows: int, out: str
) -> Result:
    """Sorted runs of some row groups."""
    dirt = Dirt()
    batches = read_edges(
        groups, request.columns, id_type, on_bad_rows=request.on_bad_rows, dirt=dirt
    )
    runs = write_runs(batches, NodeIds.open(request.folder), dirt, rows, Path(out))
    return {"runs": runs, **dataclasses.asdict(dirt)}


def range_task(
    request: IngestRequest, part: KeyRange, runs: list[str], nodes: int, out: str
) -> Result:
    """One range, merged from all runs and the earlier store."""
    before = times = None
    if request.previous is not None:
        before = GraphStore.open(request.previous)
        file = request.previous / "times.npy"
        times = np.load(file, mmap_mode="r") if file.exists() else None
    facts = merge_range(
        part,
        [Path(run) for run in runs],
        nodes,
        Path(out),
        duplicates=request.duplicates,
        before=before,
        times_before=times,
    )
    return {**facts, "out": out}


def place_task(folder: str, part: str, offset: int) -> Result:
    """Copy a range into the arrays of the store."""
    place_range(Path(folder), Path(part), offset)
    return {}


def finish_task(request: IngestRequest, groups: list[RowGroup]) -> Result:
    """Count, and add the features."""
    graph = GraphStore.open(request.folder)
    counts: Result = {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "isolated_nodes": int((graph.degrees == 0).sum()),
    }
    if groups:
        node_ids = NodeIds.open(request.folder)
        counts |= write_node_table(groups, request.node_columns, node_ids, request.folder)
    return counts


def _prepare(cluster: Cluster, request: IngestRequest, notify: Notify) -> _Ingestion:
    """Everything that can be checked before a row is read."""
    files = request.edge_files
    edge_groups = list_row_groups(files, request.columns.names)
    if not edge_groups and request.previous is None:
        raise InputError.no_rows(", ".join(request.edge_files), "edges")
    columns: list[tuple[str, list[str]]] = [(file, request.columns.ends) for file in files]
    node_groups: list[RowGroup] = []
    if request.nodes is not None:
        node_files = find_parquet_files(request.nodes)
        node_groups = list_row_groups(node_files, request.node_columns.names)
        if not node_groups:
            raise InputError.no_rows(request.nodes, "nodes")
        columns += [(file, [request.node_columns.id]) for file in node_files]
    id_type = find_id_type(columns)
    return _Ingestion(cluster, request, notify, edge_groups, node_groups, id_type)


def _number_nodes(work: _Ingestion) -> Result:
    folder = work.request.work / "ids"
    parts = work.map(
        ids_task,
        [
            Shard(f"edges-{name}", {"request": work.request, "groups": batch,
                                    "id_type": work.id_type,
                                    "out": str(folder / f"edges-{name}.parquet")})
            for name, batch in batches(work.edge_groups, work.rows_per_task)
        ],
        "ids",
    )  # fmt: skip
    parts += task_map(
        work.cluster,
        node_ids_task,
        [
            Shard(f"nodes-{name}", {"groups": batch, "column": work.request.node_columns.id,
                                    "id_type": work.id_type,
                                    "out": str(folder / f"nodes-{name}.parquet")})
            for name, batch in batches(work.node_groups, work.rows_per_task)
        ],
        markers=folder,
    )  # fmt: skip
    arguments = {"request": work.request, "parts": [part["out"] for part in parts]}
    (merged,) = task_map(work.cluster, merge_ids_task, [Shard("merged", arguments)], markers=folder)
    return merged


def _run_shards(work: _Ingestion, nodes: int) -> list[Shard]:
    return [
        Shard(
            f"rows-{name}-of-{nodes}",
            {
                "request": work.request,
                "groups": batch,
                "id_type": work.id_type,
                "rows": work.rows_per_task,
                "out": str(work.request.work / "sort" / f"rows-{name}-of-{nodes}"),
            },
        )
        for name, batch in batches(work.edge_groups, work.rows_per_task)
    ]


def _cut(work: _Ingestion, runs: list[str], nodes: int) -> list[KeyRange]:
    entries = 2 * work.rows_per_task
    ranges = cut_ranges([Path(run) for run in runs], nodes, entries)
    if work.request.previous is None:
        return ranges
    return cut_with_graph(ranges, GraphStore.open(work.request.previous), nodes, entries)


def _range_shards(
    work: _Ingestion, runs: list[str], ranges: list[KeyRange], nodes: int
) -> list[Shard]:
    return [
        Shard(
            f"{part.first}-{part.last}",
            {
                "request": work.request,
                "part": part,
                "runs": runs,
                "nodes": nodes,
                "out": str(work.request.work / "merge" / f"{part.first}-{part.last}"),
            },
        )
        for part in ranges
    ]


def batches(groups: Sequence[RowGroup], rows_per_task: int) -> list[tuple[str, list[RowGroup]]]:
    """Consecutive row groups of about ``rows_per_task`` rows, named by what they hold."""
    found: list[tuple[str, list[RowGroup]]] = []
    current: list[RowGroup] = []
    first = rows = 0
    for place, group in enumerate(groups):
        current.append(group)
        rows += group.rows
        if rows >= rows_per_task or place == len(groups) - 1:
            found.append((f"{first}-{place}", current))
            current, first, rows = [], place + 1, 0
    return found


def _counts(sorted_rows: list[Result], merged: list[Result], last: Result) -> Result:
    """Rows read = kept edges + self-loops + repeats + edges given in both directions + dirt."""
    dirt: dict[str, int] = {
        field.name: sum(done[field.name] for done in sorted_rows)
        for field in dataclasses.fields(Dirt)
    }
    left = dirt["rows"] - sum(count for name, count in dirt.items() if name != "rows")
    directed = sum(done["directed"] for done in merged) // 2
    distinct = sum(done["new"] for done in merged) // 2
    facts: dict[str, Any] = {
        key: value for key, value in last.items() if key != "peak_memory_bytes"
    }
    return {
        "rows": dirt.pop("rows"),
        **facts,
        "duplicates": left - directed,
        "reversed_duplicates": directed - distinct,
        **dirt,
    }
