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
from peg_core.graph.edge_runs import RunColumns
from peg_core.graph.edge_sides import Sides
from peg_core.graph.edge_table import RowGroup, find_id_type, find_parquet_files, list_row_groups
from peg_core.graph.graph_outline import GraphOutline
from peg_core.storage.stored_path import remove
from pipeline.run.stage import StageContext
from pipeline.stages.ingestion.node_numbering import NodeNumbering, Parts
from pipeline.stages.ingestion.row_counts import row_counts
from workers.shard import Shard
from workers.task_map import Result, TaskProgress
from workers.tasks.ingestion.edges import (
    allocate_task,
    cut_task,
    finish_task,
    place_task,
    range_task,
    run_task,
    sides_task,
)
from workers.tasks.ingestion.ids import kinds_task
from workers.tasks.ingestion.request import IngestRequest

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
    """One ingestion: its inputs, and how far it is; ``sides`` is known in the end.

    Args:
        edge_groups: Row groups of every edge list.
        node_groups: Of the node table of every kind, none where there is no table.
        id_types: Of the ids of every kind.
    """

    context: StageContext
    request: IngestRequest
    edge_groups: list[list[RowGroup]]
    node_groups: list[list[RowGroup]]
    id_types: list[pa.DataType]
    finished_steps: int = 0
    sides: Sides | None = None

    @classmethod
    def prepare(cls, context: StageContext, request: IngestRequest) -> Ingestion:
        """Everything that can be checked before a row is read."""
        edge_groups = []
        columns: list[list[tuple[str, list[str]]]] = [[] for _ in request.kinds]
        for source in request.sources:
            edge_groups.append(list_row_groups(source.files, source.columns.names))
            if not edge_groups[-1] and request.previous is None:
                raise InputError.no_rows(", ".join(source.files), "edges")
            for kind, name in zip(source.kinds, source.columns.ends, strict=True):
                columns[kind] += [(file, [name]) for file in source.files]
        node_groups: list[list[RowGroup]] = []
        for table, own in zip(request.kinds, columns, strict=True):
            node_groups.append([])
            if table.nodes is None:
                continue
            node_files = find_parquet_files(table.nodes)
            node_groups[-1] = list_row_groups(node_files, table.columns.names)
            if not node_groups[-1]:
                raise InputError.no_rows(table.nodes, "nodes")
            own += [(file, [table.columns.id]) for file in node_files]
        id_types = [find_id_type(own) for own in columns]
        return cls(context, request, edge_groups, node_groups, id_types)

    def run(self) -> dict[str, Any]:
        """Write the graph; returns the counts for the manifest."""
        request = self.request
        nodes = self._number_nodes()
        shards = [
            shard
            for place in range(len(request.sources))
            for shard in self._run_shards(place, nodes)
        ]
        sorted_rows = self._map(run_task, shards, "sort")
        self._require_edges(shards, sorted_rows)
        if len(request.kinds) == len(request.sources) == 1:
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
        counts = row_counts(sorted_rows, merged, last)
        if request.previous is not None:
            counts["edges_before"] = request.previous.at(GraphOutline).open().num_edges
            distinct = sum(done["new"] for done in merged) // 2
            counts["already_known"] = distinct - (counts["edges"] - counts["edges_before"])
        return counts

    @property
    def rows_per_task(self) -> int:
        columns = [self.request.run_columns(source) for source in self.request.sources]
        plain = all(own == RunColumns(weighted=False, timed=False) for own in columns)
        cost = BYTES_PER_ROW if plain else BYTES_PER_WEIGHTED_ROW
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
        request = self.request
        numbering = NodeNumbering(
            request,
            self.id_types,
            lambda task, shards: self._map(task, shards, "ids", ends=False),
            IDS_PER_ROW * self.rows_per_task,
        )
        parts = [Parts() for _ in request.kinds]
        for source, groups in zip(request.sources, self.edge_groups, strict=True):
            found = numbering.collect_edge_ids(source, batches(groups, self.rows_per_task))
            if request.previous is None and not sum(part.ids for part in found.values()):
                rows = sum(group.rows for group in groups)
                raise InputError.empty_graph(
                    _shown(source.files),
                    f"`graph.on_bad_rows: drop` left out all {rows:,} rows, each has a null or a "
                    "bad weight",
                )
            for kind, part in found.items():
                parts[kind] += part
        for kind, groups in enumerate(self.node_groups):
            own = batches(groups, self.rows_per_task)
            parts[kind] += numbering.collect_node_ids(kind, own)
        sizes = [numbering.number(kind, part) for kind, part in enumerate(parts)]
        if request.relations:
            shard = Shard("kinds", {"request": request, "sizes": sizes})
            self._map(kinds_task, [shard], "ids", ends=False)
        self.finished_steps += 1
        return sum(sizes)

    def _require_edges(self, shards: list[Shard], sorted_rows: list[dict[str, Any]]) -> None:
        """Refuse edge lists in which no row is an edge between two nodes."""
        for source in self.request.sources if self.request.previous is None else ():
            own = [
                done
                for shard, done in zip(shards, sorted_rows, strict=True)
                if shard.arguments["source"] == source
            ]
            left_out = sum(done[name] for done in own for name in REASONS)
            rows = sum(done["rows"] for done in own)
            if left_out == rows:
                loops = sum(done["self_loops"] for done in own)
                raise InputError.empty_graph(
                    _shown(source.files),
                    f"of {rows:,} rows {loops:,} lead from a node to itself, {rows - loops:,} have "
                    "a null or a bad weight",
                )

    def _run_shards(self, place: int, nodes: int) -> list[Shard]:
        """The rows of one edge list."""
        source = self.request.sources[place]
        named = [
            (f"rows-{place}-{name}-of-{nodes}", batch)
            for name, batch in batches(self.edge_groups[place], self.rows_per_task)
        ]
        return [
            Shard(
                name,
                {
                    "request": self.request,
                    "source": source,
                    "groups": batch,
                    "id_types": [self.id_types[kind] for kind in source.kinds],
                    "rows": self.rows_per_task,
                    "out": self.request.work / "sort" / name,
                },
            )
            for name, batch in named
        ]

    def _compare_sides(self) -> Sides:
        """Whether the two columns of the edge list name the same nodes."""
        arguments = {
            "source": self.request.sources[0],
            "groups": self.edge_groups[0],
            "id_type": self.id_types[0],
        }
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


def _shown(files: Sequence[str]) -> str:
    """The files of an edge list in a message."""
    first, *others = files
    return f"{first} (and {len(others):,} more)" if others else first


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
