"""Private memory of the split and of the graphs without a fold as a graph gets more edges.

    python benchmarks/split.py
    python benchmarks/split.py --edges 2000000,8000000 --entries 2097152

R-MAT graphs with one number of nodes and more and more edges, split by a hash of the pair into
five folds. `one task` holds the held-out pairs, `ranges` are the tasks of a large graph, run one
after the other in one process. `fold in memory` and `fold on disk` open the training graph without
a fold and count the held-out links in it, as an encoding does. Each runs in a process of its own;
what counts is private memory (RssAnon) above that before the start. The last line is bytes per
further edge.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from peg_core.artifacts.positions import Positions
from peg_core.generators.random_graphs import RecursiveMatrix
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.node_ids import NodeIds
from peg_core.splits.split_store import SplitStore
from peg_core.splits.split_work import SplitWork
from pipeline.stages.range_split import RangeSplit
from pipeline.stages.split import ENTRIES_PER_TASK
from workers.artifact_ref import ArtifactRef
from workers.process_memory.private_memory import private_bytes, watched_memory
from workers.tasks.encode import EncodeRequest, fold_graph_task, open_graph
from workers.tasks.split import SplitRequest, split_task
from workers.tasks.split_ranges import RangeRequest

NOTHING = {"valid": None, "test": None}


def write_graph(folder: Path, nodes: int, edges: int) -> int:
    pieces = list(RecursiveMatrix(nodes, edges).chunks(seed=0))
    ends = [np.concatenate([getattr(p, end) for p in pieces]) for end in ("source", "target")]
    graph = GraphStore.from_edges(*ends, num_nodes=nodes)
    graph.save(folder)
    NodeIds(pa.array(np.arange(nodes))).save(folder)
    return graph.num_edges


def request_of(folder: Path, name: str) -> SplitRequest:
    graph = ArtifactRef.of_folder(folder, GraphStore)
    out = ArtifactRef.of_folder(folder / name, SplitStore)
    return SplitRequest(
        "random", 0.05, 0.1, 5, 0, NOTHING, NOTHING, ("source", "target"), graph, out
    )


def one_task(folder: Path, entries: int) -> None:
    del entries
    split_task(request_of(folder, "one"))


def ranges(folder: Path, entries: int) -> None:
    def run_here(task: Callable[..., Any], shards: Any, step: str) -> list[Any]:
        del step
        return [json.loads(json.dumps(task(**shard.arguments))) for shard in shards]

    work = ArtifactRef.of_folder(folder / "work", SplitWork)
    RangeSplit(RangeRequest(request_of(folder, "ranges"), work), run_here, entries).run()


def fold_in_memory(folder: Path, entries: int) -> None:
    del entries
    open_graph(_encoding(folder))


def fold_on_disk(folder: Path, entries: int) -> None:
    del entries
    kept = ArtifactRef.of_folder(folder / "fold", GraphStore)
    fold_graph_task(request_of(folder, "one").out, 1, kept)
    open_graph(_encoding(folder, fold_graph=kept))


def _encoding(folder: Path, **settings: Any) -> EncodeRequest:
    out = ArtifactRef.of_folder(folder / "positions", Positions)
    return EncodeRequest("le", {}, 0, out, split=request_of(folder, "one").out, fold=1, **settings)


RUNS: dict[str, Callable[[Path, int], None]] = {
    "one task": one_task,
    "ranges": ranges,
    "fold in memory": fold_in_memory,
    "fold on disk": fold_on_disk,
}


def measure(name: str, folder: Path, entries: int) -> tuple[int, float]:
    """Private memory above that of the start, and seconds, in this process."""
    before, start = private_bytes(), time.perf_counter()
    with watched_memory() as memory:
        RUNS[name](folder, entries)
    return memory.peak_bytes - before, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", default="4000000,16000000", help="drawn, commas between")
    parser.add_argument("--entries", type=int, default=ENTRIES_PER_TASK, help="of a range")
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)  # in a process of its own
    options = parser.parse_args()
    if options.run:
        name, folder = options.run
        print(*measure(name, Path(folder), options.entries))
        return
    print(f"{'edges':>12} " + " ".join(f"{name:>22}" for name in RUNS))
    rows = []
    for edges in map(int, options.edges.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            found = write_graph(Path(folder), options.nodes, edges)
            cells, peaks = [], []
            for name in RUNS:
                command = [sys.executable, __file__, "--run", name, folder]
                command += ["--entries", str(options.entries)]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                peak, seconds = done.stdout.split()[-2:]
                peaks.append(int(peak))
                cells.append(f"{int(peak) / 1e6:,.0f} MB, {float(seconds):,.0f} s")
        rows.append((found, *peaks))
        print(f"{found:12,} " + " ".join(f"{cell:>22}" for cell in cells), flush=True)
    more = rows[-1][0] - rows[0][0]
    further = [(last - first) / more for first, last in zip(*rows[:: len(rows) - 1], strict=True)]
    print(f"{'per edge':>12} " + " ".join(f"{cell:>20.2f} B" for cell in further[1:]))


if __name__ == "__main__":
    main()
