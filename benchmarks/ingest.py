"""Ingest a large edge list: our out-of-core tasks beside one polars script in memory.

    python benchmarks/ingest.py                       # 50M R-MAT edges
    python benchmarks/ingest.py --edges 300000000 --only-ours

The peer is the shortest polars script that produces the same arrays: unique ids, a join
for the indices, symmetrise, deduplicate, sort. Each run is a process of its own; wall time
is measured inside it, without the start of Python and Ray, memory is the peak of the
processes' proportional set size (shared pages are counted once).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil

PEER = """
import json, sys, time
import numpy as np
import polars as pl
start = time.perf_counter()
edges = pl.read_parquet(sys.argv[1])
ids = pl.concat([edges["src"], edges["dst"]]).unique().sort()
index = pl.DataFrame({"id": ids, "index": np.arange(len(ids), dtype=np.int32)})
edges = (
    edges.join(index, left_on="src", right_on="id").rename({"index": "u"})
    .join(index, left_on="dst", right_on="id").rename({"index": "v"})
    .select("u", "v").filter(pl.col("u") != pl.col("v"))
)
both = pl.concat([edges, edges.select(u="v", v="u")]).unique().sort("u", "v")
counts = np.bincount(both["u"].to_numpy(), minlength=len(ids))
np.save(sys.argv[2] + "/indptr.npy", np.concatenate([[0], np.cumsum(counts)]))
np.save(sys.argv[2] + "/indices.npy", both["v"].to_numpy())
print(json.dumps({"seconds": time.perf_counter() - start}))
"""

OURS = """
import json, sys, time
from pathlib import Path
from peg_core.graph.edge_rows import EdgeColumns
from peg_core.graph.node_table import NodeColumns
from workers.cluster import Cluster
from workers.cluster_settings import ClusterSettings
from peg_core.graph.graph_store import GraphStore
from pipeline.run.stage import StageContext
from pipeline.run.stage_inputs import StageInputs
from pipeline.stages.ingestion.ingestion import Ingestion
from workers.artifact_ref import ArtifactRef
from workers.shard import Shard
from workers.task_map import TaskMap
from workers.tasks.ingestion.edges import IngestRequest

class Silent:
    def update(self, done, total, note=""):
        pass

def ready() -> dict:
    import workers.tasks.ingestion.edges
    return {}

workers = int(sys.argv[3])
cluster = Cluster(ClusterSettings(workers=workers, task_memory_bytes=int(sys.argv[4])))
folder = Path(sys.argv[2])
# Ray's processes are up and have imported their modules before the clock starts
tasks = TaskMap(cluster, folder / "ready")
tasks.map(ready, [Shard(str(i)) for i in range(2 * workers)])
columns = EdgeColumns("src", "dst")
out = ArtifactRef.of_folder(folder, GraphStore)
request = IngestRequest([sys.argv[1]], columns, "sum", "error", None, NodeColumns(), out)
context = StageContext(None, out, StageInputs({}), tasks, Silent(), None)
start = time.perf_counter()
counts = Ingestion.prepare(context, request).run()
print(json.dumps({"seconds": time.perf_counter() - start, "edges": counts["edges"]}))
cluster.close()
"""


def proportional_bytes(process: psutil.Process) -> int:
    """Memory of a process and its children, shared pages counted once."""
    total = 0
    for one in [process, *process.children(recursive=True)]:
        try:
            total += one.memory_full_info().pss
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return total


def measure(code: str, *arguments: object) -> dict[str, float]:
    """Run a script; its own seconds and the peak memory of its process tree."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, text=True
    )
    peak = 0

    def watch() -> None:
        nonlocal peak
        handle = psutil.Process(process.pid)
        while process.poll() is None:
            try:
                peak = max(peak, proportional_bytes(handle))
            except psutil.NoSuchProcess:
                return
            time.sleep(0.25)

    thread = threading.Thread(target=watch)
    thread.start()
    output, _ = process.communicate()
    thread.join()
    if process.returncode:
        raise SystemExit(f"a run failed with exit code {process.returncode}")
    return {**json.loads(output.splitlines()[-1]), "gigabytes": peak / 1e9}


def same_arrays(first: Path, second: Path) -> bool:
    import numpy as np

    return all(
        np.array_equal(np.load(first / name, mmap_mode="r"), np.load(second / name, mmap_mode="r"))
        for name in ("indptr.npy", "indices.npy")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edges", type=int, default=50_000_000)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--task-memory", type=int, default=1_000_000_000)
    parser.add_argument("--only-ours", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        edges = folder / "edges.parquet"
        subprocess.run(
            [sys.executable, "-m", "pipeline", "generate", "rmat", "--nodes",
             str(max(2, options.edges // 16)), "--edges", str(options.edges), "--out", str(edges)],
            check=True,
        )  # fmt: skip
        runs = {"ours, 2 workers": 2, "ours, 1 worker": 1}
        best: dict[str, dict[str, float]] = {}
        for repeat in range(options.repeats):
            for label, workers in runs.items():
                out = folder / f"ours-{workers}-{repeat}"
                out.mkdir()
                found = measure(OURS, edges, out, workers, options.task_memory)
                best[label] = min(best.get(label, found), found, key=lambda row: row["seconds"])
            if not options.only_ours:
                out = folder / f"peer-{repeat}"
                out.mkdir()
                found = measure(PEER, edges, out)
                best["polars"] = min(best.get("polars", found), found, key=lambda r: r["seconds"])
                if not same_arrays(out, folder / f"ours-2-{repeat}"):
                    raise SystemExit("the two stores differ")
        report(best, options.edges)


def report(best: dict[str, dict[str, float]], edges: int) -> None:
    print(f"\n{'':<18}{'seconds':>9}{'M edges/s':>11}{'peak GB':>9}")
    for label, row in best.items():
        rate = edges / row["seconds"] / 1e6
        print(f"{label:<18}{row['seconds']:>9.1f}{rate:>11.2f}{row['gigabytes']:>9.2f}")
    ours = best["ours, 2 workers"]
    print(f"\n1 -> 2 workers: {best['ours, 1 worker']['seconds'] / ours['seconds']:.2f}x")
    if "polars" in best:
        peer = best["polars"]
        print(f"memory, polars / ours: {peer['gigabytes'] / ours['gigabytes']:.2f}")
        print(f"ratio: {peer['seconds'] / ours['seconds']:.2f}")
    else:
        print("ratio: not measured (--only-ours)")


if __name__ == "__main__":
    main()
