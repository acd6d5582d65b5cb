"""Ingestion step by step: read, number, sort, merge; memory is bounded at every step."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from peg_core.errors import InputError
from peg_core.graph.edge_ranges import KeyRange, cut_ranges
from peg_core.graph.edge_rows import Dirt
from peg_core.graph.edge_sides import Sides
from peg_core.graph.edge_table import RowGroup, find_id_type, find_parquet_files, list_row_groups
from peg_core.graph.graph_store import GraphSize
from peg_core.storage.stored_path import remove
from pipeline.run.stage import StageContext
from pipeline.stages.ingestion.node_numbering import NodeNumbering
from workers.shard import Shard
from workers.task_map import Result, TaskProgress
from workers.tasks.ingest import (
    IngestRequest,
    allocate_task,
    cut_task,
    finish_task,
    place_task,
    range_task,
    run_task,
    sides_task,
)

# What one row costs at most while it is read, looked up, mirrored and sorted.
BYTES_PER_ROW = 200
BYTES_PER_WEIGHTED_ROW = 320
# A task that merges ids takes as many as one that reads rows has.
IDS_PER_ROW = 2
# Small enough for an even load and for progress that moves.
MAX_ROWS_PER_TASK = 5_000_000
STEPS = 5
# Why a row was left out.
REASONS = [field.name for field in dataclasses.fields(Dirt) if field.name != "rows"]


@dataclass
class Ingestion:
    """One ingestion: its inputs, and how far it is; ``sides`` is known in the end."""

    context: StageContext
    request: IngestRequest
    edge_groups: list[RowGroup]
    node_groups: list[RowGroup]
    id_type: pa.DataType
    finished_steps: int = 0
    sides: Sides | None = None

    @classmethod
    def prepare(cls, context: StageContext, request: IngestRequest) -> Ingestion:
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
        return cls(context, request, edge_groups, node_groups, find_id_type(columns))

    def run(self) -> dict[str, Any]:
        """Write the graph; returns the counts for the manifest."""
        request = self.request
        nodes = self._number_nodes()
        shards = self._run_shards(nodes)
        sorted_rows = self._map(run_task, shards, "sort")
        self._require_edges(sorted_rows)
        self.sides = self._compare_sides()
        runs: list[Path] = [
            shard.arguments["out"] / run
            for shard, done in zip(shards, sorted_rows, strict=True)
            for run in done["runs"]
        ]
        ranges = self._cut(runs, nodes)
        parts = self._range_shards(runs, ranges, nodes)
        merged = self._map(range_task, parts, "merge")
        self._write([shard.arguments["out"] for shard in parts], merged, nodes)
        finish = [Shard("finish", {"request": request, "groups": self.node_groups})]
        (last,) = self._map(finish_task, finish, "finish")
        remove(request.work)
        counts = _counts(sorted_rows, merged, last)
        if request.previous is not None:
            counts["edges_before"] = request.previous.at(GraphSize).open().num_edges
            distinct = sum(done["new"] for done in merged) // 2
            counts["already_known"] = distinct - (counts["edges"] - counts["edges_before"])
        return counts

    @property
    def rows_per_task(self) -> int:
        columns = self.request.columns
        cost = BYTES_PER_WEIGHTED_ROW if columns.weight or columns.time else BYTES_PER_ROW
        memory = self.context.tasks.settings.task_memory_bytes
        return max(1, min(MAX_ROWS_PER_TASK, memory // cost))

    def _map(
        self, task: Callable[..., Result], shards: list[Shard], name: str, *, ends: bool = True
    ) -> list[Result]:
        """One step, or the first half of it where it does not end there."""

        def on_progress(p: TaskProgress[Any]) -> None:
            part = self.finished_steps + p.done / max(p.total, 1)
            self.context.progress.update(part, STEPS, f"{name} {p.done}/{p.total}")

        results = self.context.map(
            task, shards, markers=self.request.work / name, on_progress=on_progress
        )
        self.finished_steps += ends
        return results

    def _number_nodes(self) -> int:
        """Give every id its number; returns how many there are."""
        numbering = NodeNumbering(
            self.request,
            self.id_type,
            lambda task, shards: self._map(task, shards, "ids", ends=False),
            IDS_PER_ROW * self.rows_per_task,
        )
        parts, ids = numbering.collect_edge_ids(batches(self.edge_groups, self.rows_per_task))
        if self.request.previous is None and not ids:
            rows = sum(group.rows for group in self.edge_groups)
            raise InputError.empty_graph(
                self._edge_files,
                f"`graph.on_bad_rows: drop` left out all {rows:,} rows, each has a null or a bad "
                "weight",
            )
        node_batches = batches(self.node_groups, self.rows_per_task)
        node_parts, node_ids = numbering.collect_node_ids(node_batches)
        nodes = numbering.number(parts + node_parts, ids + node_ids)
        self.finished_steps += 1
        return nodes

    @property
    def _edge_files(self) -> str:
        first, *others = self.request.edge_files
        return f"{first} (and {len(others):,} more)" if others else first

    def _require_edges(self, sorted_rows: list[dict[str, Any]]) -> None:
        """Refuse rows of which none is an edge between two nodes."""
        left_out = sum(done[name] for done in sorted_rows for name in REASONS)
        rows = sum(done["rows"] for done in sorted_rows)
        if self.request.previous is None and left_out == rows:
            loops = sum(done["self_loops"] for done in sorted_rows)
            raise InputError.empty_graph(
                self._edge_files,
                f"of {rows:,} rows {loops:,} lead from a node to itself, {rows - loops:,} have a "
                "null or a bad weight",
            )

    def _run_shards(self, nodes: int) -> list[Shard]:
        folder = self.request.work / "sort"
        return [
            Shard(
                f"rows-{name}-of-{nodes}",
                {
                    "request": self.request,
                    "groups": batch,
                    "id_type": self.id_type,
                    "rows": self.rows_per_task,
                    "out": folder / f"rows-{name}-of-{nodes}",
                },
            )
            for name, batch in batches(self.edge_groups, self.rows_per_task)
        ]

    def _compare_sides(self) -> Sides:
        """Whether the two columns of the edge list name the same nodes."""
        arguments = {
            "request": self.request, "groups": self.edge_groups, "id_type": self.id_type
        }  # fmt: skip
        return self._map(sides_task, [Shard("sides", arguments)], "sides", ends=False)[0]

    def _cut(self, runs: list[Path], nodes: int) -> list[KeyRange]:
        entries = 2 * self.rows_per_task
        ranges = cut_ranges(runs, nodes, entries)
        if self.request.previous is None:
            return ranges
        arguments = {"request": self.request, "ranges": ranges, "nodes": nodes, "entries": entries}
        (cut,) = self._map(cut_task, [Shard(f"cut-{nodes}", arguments)], "cut", ends=False)
        return [KeyRange(first, last) for first, last in cut["ranges"]]

    def _range_shards(self, runs: list[Path], ranges: list[KeyRange], nodes: int) -> list[Shard]:
        folder = self.request.work / "merge"
        return [
            Shard(
                f"{part.first}-{part.last}",
                {
                    "request": self.request,
                    "part": part,
                    "runs": runs,
                    "nodes": nodes,
                    "out": folder / f"{part.first}-{part.last}",
                },
            )
            for part in ranges
        ]

    def _write(self, folders: list[Path], merged: list[dict[str, Any]], nodes: int) -> None:
        """Bring the merged ranges together in the arrays of the store."""
        room = {"request": self.request, "ranges": folders, "facts": merged, "nodes": nodes}
        self._map(allocate_task, [Shard("allocate", room)], "write", ends=False)
        offsets = np.cumsum([0, *(done["entries"] for done in merged)])
        shared: dict[str, Any] = {"request": self.request}
        if self.request.fading is not None:
            shared["newest"] = max(done["newest"] for done in merged if "newest" in done)
        shards = [
            Shard(folder.name, {**shared, "part": folder, "offset": int(offset)})
            for folder, offset in zip(folders, offsets, strict=False)
        ]
        self._map(place_task, shards, "write")


def batches(groups: Sequence[RowGroup], rows_per_task: int) -> list[tuple[str, list[RowGroup]]]:
    """Consecutive row groups of about ``rows_per_task`` rows, named by what they hold."""
    found: list[tuple[str, list[RowGroup]]] = []
    current: list[RowGroup] = []
    first = rows = 0
    for number, group in enumerate(groups):
        current.append(group)
        rows += group.rows
        if rows >= rows_per_task or number == len(groups) - 1:
            found.append((f"{first}-{number}", current))
            current, first, rows = [], number + 1, 0
    return found


def _counts(
    sorted_rows: list[dict[str, Any]], merged: list[dict[str, Any]], last: dict[str, int]
) -> dict[str, Any]:
    """Rows read = kept edges + self-loops + repeats + edges given in both directions + dirt."""
    dirt: dict[str, int] = {
        field.name: sum(done[field.name] for done in sorted_rows)
        for field in dataclasses.fields(Dirt)
    }
    left = dirt["rows"] - sum(count for name, count in dirt.items() if name != "rows")
    directed = sum(done["directed"] for done in merged) // 2
    distinct = sum(done["new"] for done in merged) // 2
    return {
        "rows": dirt.pop("rows"),
        **last,
        "duplicates": left - directed,
        "reversed_duplicates": directed - distinct,
        **dirt,
    }
