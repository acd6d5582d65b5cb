"""A graph to encode, under a path that every task can open."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from peg_core.atomic_file import atomic_path, write_array
from peg_core.encoding.parameter_checks import require_walkable
from peg_core.graph.graph_store import FloatArray
from peg_core.mapped_array import new_mapped_array
from peg_core.splits.split_store import NO_FOLD
from workers.cluster import Cluster
from workers.distributed_encoding.subspace_iteration import Tell
from workers.task_map import Result, Shard, task_map
from workers.tasks.encode import EncodeRequest, open_graph


@dataclass(frozen=True)
class EncodedGraph:
    """What :func:`keep_graph_task` found.

    Args:
        graph: Graph store.
        degrees: File of the weighted degrees, float64, [num_nodes].
        bounds: Nodes at which ranges begin, and the end; they depend on the graph alone.
        volume: Sum of the weighted degrees.
        num_edges, leaks, peak_memory_bytes: For the result of the encoding.
    """

    graph: Path
    degrees: Path
    bounds: tuple[int, ...]
    volume: float
    num_edges: int
    leaks: dict[str, int]
    peak_memory_bytes: int

    @property
    def num_nodes(self) -> int:
        return self.bounds[-1]

    @property
    def ranges(self) -> range:
        return range(len(self.bounds) - 1)

    def rows(self, number: int) -> slice:
        return slice(self.bounds[number], self.bounds[number + 1])

    def result(self, report: dict[str, Any], peak_memory_bytes: int) -> Result:
        """What ``encode_task`` would have returned."""
        return {
            "report": report,
            "leaks": self.leaks,
            "edges": self.num_edges,
            "peak_memory_bytes": max(peak_memory_bytes, self.peak_memory_bytes),
        }


def keep_graph(
    cluster: Cluster, request: EncodeRequest, work: Path, *, rows: int, entries: int, tell: Tell
) -> EncodedGraph:
    """Cut a graph into ranges of at most about ``rows`` nodes and ``entries`` neighbours."""
    arguments = {"request": request, "folder": work, "rows": rows, "entries": entries}
    (found,) = task_map(
        cluster,
        keep_graph_task,
        [Shard("graph", arguments)],
        markers=work / "done",
        on_progress=lambda progress: tell("graph", progress),
    )
    return EncodedGraph(
        graph=Path(found["graph"]),
        degrees=work / "degrees.npy",
        bounds=tuple(found["bounds"]),
        volume=found["volume"],
        num_edges=found["edges"],
        leaks=found["leaks"],
        peak_memory_bytes=found["peak_memory_bytes"],
    )


def keep_graph_task(request: EncodeRequest, folder: Path, rows: int, entries: int) -> Result:
    """Show a graph to be free of held-out links, and keep it where it is not kept yet."""
    graph, leaks = open_graph(request)
    require_walkable(graph)
    if request.split is None and request.graph is not None:
        path = request.graph
    elif request.split is not None and request.fold == NO_FOLD:
        path = request.split / "train_graph"
    else:
        path = folder / "graph"
        graph.save(path)
    degrees = graph.weighted_degrees
    write_array(folder / "degrees.npy", degrees)
    work = graph.indptr / entries + np.arange(graph.num_nodes + 1) / rows
    inner = np.searchsorted(work, np.arange(1, work[-1]))
    return {
        "graph": str(path),
        "leaks": leaks,
        "edges": graph.num_edges,
        "bounds": np.unique([0, *inner.tolist(), graph.num_nodes]).tolist(),
        "volume": float(degrees.sum()),
    }


def create_array(file: Path, shape: tuple[int, ...], kind: Any) -> None:
    """An ``.npy`` file of zeros for tasks to write their ranges into."""
    if file.exists():
        return
    with atomic_path(file) as temporary:
        if 0 in shape:  # cannot be mapped
            with temporary.open("wb") as out:
                np.save(out, np.zeros(shape, dtype=kind))
        else:
            new_mapped_array(temporary, shape, kind)


def write_range(file: Path, first: int, values: FloatArray | Any) -> None:
    """Write rows from ``first`` on into an array file.

    No shared mapping: two machines may write to the same page.
    """
    if len(values) == 0:
        return
    whole = np.load(file, mmap_mode="r")
    own = np.ascontiguousarray(values, dtype=whole.dtype)
    with file.open("r+b") as out:
        out.seek(whole.offset + first * (own.nbytes // len(own)))
        out.write(own.tobytes())
