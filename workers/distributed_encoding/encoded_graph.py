"""A graph to encode, under a path that every task can open."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from peg_core.atomic_file import write_array
from peg_core.encoding.parameter_checks import require_encodable
from peg_core.graph.graph_store import GraphStore
from peg_core.splits.split_store import NO_FOLD
from workers.artifact_ref import ArtifactRef
from workers.distributed_encoding.encoding_steps import EncodingSteps
from workers.shard import Shard
from workers.tasks.encode import EncodeRequest, EncodeResult, open_graph


class KeptResult(TypedDict):
    """What was found about a graph: leaked links, edges, ranges, sum of its degrees."""

    leaks: dict[str, int]
    edges: int
    bounds: list[int]
    volume: float


@dataclass(frozen=True)
class EncodedGraph:
    """What :func:`keep_graph_task` found.

    Args:
        graph: The graph.
        degrees: File of the weighted degrees, float64, [num_nodes].
        bounds: Nodes at which ranges begin, and the end; they depend on the graph alone.
        volume: Sum of the weighted degrees.
        num_edges, leaks: For the result of the encoding.
    """

    graph: ArtifactRef[GraphStore]
    degrees: Path
    bounds: tuple[int, ...]
    volume: float
    num_edges: int
    leaks: dict[str, int]

    @property
    def num_nodes(self) -> int:
        return self.bounds[-1]

    @property
    def ranges(self) -> range:
        return range(len(self.bounds) - 1)

    def rows(self, number: int) -> slice:
        return slice(self.bounds[number], self.bounds[number + 1])

    def result(self, report: dict[str, Any]) -> EncodeResult:
        """What ``encode_task`` would have returned."""
        return {"report": report, "leaks": self.leaks, "edges": self.num_edges}


def is_kept(request: EncodeRequest) -> bool:
    """Whether the graph to encode is on disk; one without a fold is only if it is large."""
    return request.split is None or request.fold == NO_FOLD or request.fold_graph is not None


def kept_graph(request: EncodeRequest, folder: Path) -> ArtifactRef[GraphStore]:
    """Where tasks find the graph to encode."""
    if is_kept(request):
        return request.message_graph
    return ArtifactRef.of_folder(folder / "graph", GraphStore)


def keep_graph(steps: EncodingSteps, *, rows: int, entries: int) -> EncodedGraph:
    """Cut a graph into ranges of at most about ``rows`` nodes and ``entries`` neighbours."""
    request, work = steps.request, steps.work
    arguments = {"request": request, "folder": work, "rows": rows, "entries": entries}
    (found,) = steps.map("graph", keep_graph_task, [Shard("graph", arguments)])
    return EncodedGraph(
        graph=kept_graph(request, work),
        degrees=work / "degrees.npy",
        bounds=tuple(found["bounds"]),
        volume=found["volume"],
        num_edges=found["edges"],
        leaks=found["leaks"],
    )


def keep_graph_task(request: EncodeRequest, folder: Path, rows: int, entries: int) -> KeptResult:
    """Show a graph to be free of held-out links, and keep it where it is not kept yet."""
    graph, leaks = open_graph(request)
    require_encodable(graph)
    if not is_kept(request):
        graph.save(kept_graph(request, folder).folder)
    degrees = graph.weighted_degrees
    write_array(folder / "degrees.npy", degrees)
    work = graph.indptr / entries + np.arange(graph.num_nodes + 1) / rows
    inner = np.searchsorted(work, np.arange(1, work[-1]))
    return {
        "leaks": leaks,
        "edges": graph.num_edges,
        "bounds": np.unique([0, *inner.tolist(), graph.num_nodes]).tolist(),
        "volume": float(degrees.sum()),
    }
