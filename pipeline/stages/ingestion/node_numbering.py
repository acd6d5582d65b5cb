"""Numbers for all nodes: the distinct ids of the rows, merged by one task or range by range."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from peg_core.graph.edge_table import RowGroup
from peg_core.graph.ids.id_runs import IdRange
from workers.shard import Shard
from workers.tasks.ingest import (
    IngestRequest,
    cut_ids_task,
    id_range_task,
    ids_task,
    merge_ids_task,
    node_ids_task,
    number_ids_task,
)

# Row groups that a task reads together, and what they are called.
Batches = list[tuple[str, list[RowGroup]]]
MapTasks = Callable[[Callable[..., Any], list[Shard]], list[Any]]


@dataclass(frozen=True)
class NodeNumbering:
    """Gives every id of the edge list and of the node table its number.

    Args:
        map_tasks: Runs a task for every shard.
        ids_per_range: As many ids as a task may merge.
    """

    request: IngestRequest
    id_type: pa.DataType
    map_tasks: MapTasks
    ids_per_range: int

    @property
    def _folder(self) -> Path:
        return self.request.work / "ids"

    def collect_edge_ids(self, batches: Batches) -> tuple[list[Path], int]:
        """The distinct ids of every batch: their files, and how many ids these hold together."""
        return self._collect(ids_task, "edges", batches, {"request": self.request})

    def collect_node_ids(self, batches: Batches) -> tuple[list[Path], int]:
        """The same of a node table."""
        column = {"column": self.request.node_columns.id}
        return self._collect(node_ids_task, "nodes", batches, column)

    def _collect(
        self, task: Callable[..., Any], kind: str, batches: Batches, arguments: dict[str, Any]
    ) -> tuple[list[Path], int]:
        files = [self._folder / f"{kind}-{name}.parquet" for name, _ in batches]
        shards = [
            Shard(
                f"{kind}-{name}",
                {**arguments, "id_type": self.id_type, "groups": groups, "out": file},
            )
            for (name, groups), file in zip(batches, files, strict=True)
        ]
        return files, sum(part["ids"] for part in self.map_tasks(task, shards))

    def number(self, parts: list[Path], ids: int) -> int:
        """Number the distinct ids of all parts, which hold ``ids`` together; returns how many."""
        request: dict[str, Any] = {"request": self.request}
        if ids <= self.ids_per_range:
            shard = Shard("merged", {**request, "parts": parts})
            (merged,) = self.map_tasks(merge_ids_task, [shard])
        else:
            shards = self._range_shards(parts)
            counts = [done["ids"] for done in self.map_tasks(id_range_task, shards)]
            files = [shard.arguments["out"] for shard in shards]
            shard = Shard("merged", {**request, "ranges": files, "count": sum(counts)})
            (merged,) = self.map_tasks(number_ids_task, [shard])
        nodes: int = merged["nodes"]
        return nodes

    def _range_shards(self, parts: list[Path]) -> list[Shard]:
        name = f"ranges-of-{self.ids_per_range}"
        cuts = self._folder / name / "cuts.parquet"
        cut = Shard(name, {"parts": parts, "ids_per_range": self.ids_per_range, "out": cuts})
        (done,) = self.map_tasks(cut_ids_task, [cut])
        return [
            Shard(
                f"{name}-{number}",
                {
                    "request": self.request,
                    "parts": parts,
                    "part": IdRange(cuts, number),
                    "out": cuts.with_name(f"{number}.parquet"),
                },
            )
            for number in range(done["ranges"])
        ]
