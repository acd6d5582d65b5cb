"""Numbers for all nodes: the distinct ids of the rows, merged by one task or range by range."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from peg_core.graph.edge_rows import EdgeSource
from peg_core.graph.edge_table import RowGroup
from peg_core.graph.ids.id_runs import IdRange
from workers.shard import Shard
from workers.tasks.ingestion.ids import (
    cut_ids_task,
    id_range_task,
    ids_task,
    merge_ids_task,
    node_ids_task,
    number_ids_task,
)
from workers.tasks.ingestion.request import IngestRequest

# Row groups that a task reads together, and what they are called.
Batches = list[tuple[str, list[RowGroup]]]
MapTasks = Callable[[Callable[..., Any], list[Shard]], list[Any]]


@dataclass(frozen=True)
class Parts:
    """Files with distinct ids of one kind, and how many ids these hold together."""

    files: list[Path] = field(default_factory=list)
    ids: int = 0

    def __add__(self, other: Parts) -> Parts:
        return Parts(self.files + other.files, self.ids + other.ids)


@dataclass(frozen=True)
class NodeNumbering:
    """Gives every id of the edge lists and of the node tables its number, kind by kind.

    Args:
        id_types: Of the ids of each kind.
        map_tasks: Runs a task for every shard.
        ids_per_range: As many ids as a task may merge.
    """

    request: IngestRequest
    id_types: list[pa.DataType]
    map_tasks: MapTasks
    ids_per_range: int

    @property
    def _folder(self) -> Path:
        return self.request.work / "ids"

    def collect_edge_ids(self, source: EdgeSource, batches: Batches) -> dict[int, Parts]:
        """The distinct ids of every batch of an edge list, by their kind."""
        kinds = list(dict.fromkeys(source.kinds))
        ends = [tuple(end for end in (0, 1) if source.kinds[end] == kind) for kind in kinds]
        names = [f"edges-{source.number}-{name}" for name, _ in batches]
        files = [[self._folder / f"{name}-{kind}.parquet" for kind in kinds] for name in names]
        shards = [
            Shard(
                name,
                {
                    "request": self.request,
                    "source": source,
                    "id_types": [self.id_types[kind] for kind in source.kinds],
                    "groups": groups,
                    "outs": outs,
                    "ends": ends,
                },
            )
            for name, (_, groups), outs in zip(names, batches, files, strict=True)
        ]
        counts = [done["ids"] for done in self.map_tasks(ids_task, shards)]
        return {
            kind: Parts([outs[n] for outs in files], sum(count[n] for count in counts))
            for n, kind in enumerate(kinds)
        }

    def collect_node_ids(self, kind: int, batches: Batches) -> Parts:
        """The same of the node table of a kind."""
        files = [self._folder / f"nodes-{kind}-{name}.parquet" for name, _ in batches]
        shards = [
            Shard(
                f"nodes-{kind}-{name}",
                {
                    "column": self.request.kinds[kind].columns.id,
                    "id_type": self.id_types[kind],
                    "groups": groups,
                    "out": file,
                },
            )
            for (name, groups), file in zip(batches, files, strict=True)
        ]
        return Parts(files, sum(part["ids"] for part in self.map_tasks(node_ids_task, shards)))

    def number(self, kind: int, parts: Parts) -> int:
        """Number the distinct ids of a kind; returns how many nodes it has."""
        request: dict[str, Any] = {"request": self.request, "kind": kind}
        if parts.ids <= self.ids_per_range:
            shard = Shard(f"merged-{kind}", {**request, "parts": parts.files})
            (merged,) = self.map_tasks(merge_ids_task, [shard])
        else:
            shards = self._range_shards(kind, parts.files)
            counts = [done["ids"] for done in self.map_tasks(id_range_task, shards)]
            files = [shard.arguments["out"] for shard in shards]
            arguments = {**request, "ranges": files, "count": sum(counts)}
            (merged,) = self.map_tasks(number_ids_task, [Shard(f"merged-{kind}", arguments)])
        nodes: int = merged["nodes"]
        return nodes

    def _range_shards(self, kind: int, parts: list[Path]) -> list[Shard]:
        name = f"ranges-of-{self.ids_per_range}-{kind}"
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
