"""Laplacian eigenmaps against scipy's ARPACK on the same normalised adjacency.

    python benchmarks/eigenmaps.py
    python benchmarks/eigenmaps.py --graphs sbm-100k,grid-100k --repeats 3 --clock wall

Every solution runs in a process of its own: its CPU and wall time, the growth of its
memory above what the graph takes, and its true residuals in float64. Both solvers get
the largest component, the same number of threads, and the same tolerance. The last
line is the geometric mean of the speed-ups.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg

from peg_core.encoding.spectral.component_spectra import induced_component
from peg_core.encoding.spectral.solver import SolverOptions, normalised_laplacian, solve_component
from peg_core.generators.edge_generator import EdgeGenerator
from peg_core.generators.random_graphs import Grid, RecursiveMatrix, StochasticBlockModel
from peg_core.graph.components import connected_components
from peg_core.graph.graph_store import GraphStore
from peg_core.random_streams import random_stream

GENERATED: dict[str, EdgeGenerator] = {
    "sbm-10k": StochasticBlockModel(10_000, 100_000, blocks=100),
    "rmat-10k": RecursiveMatrix(10_000, 100_000),
    "grid-10k": Grid(10_000),
    "sbm-100k": StochasticBlockModel(100_000, 1_000_000, blocks=100),
    # p = 128 ends at its gap, where a warm start pays
    "sbm-gap-100k": StochasticBlockModel(100_000, 1_000_000, blocks=129),
    "rmat-100k": RecursiveMatrix(100_000, 1_000_000),
    "grid-100k": Grid(100_000),
    "sbm-5m": StochasticBlockModel(5_000_000, 50_000_000, blocks=65),
}
REAL = ("ca-astroph", "map-of-github")
DEFAULT = ("ca-astroph", "map-of-github", "sbm-100k", "rmat-100k", "grid-100k")
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


def build_graph(name: str) -> GraphStore:
    """The largest component of a generated or a real graph."""
    if name in GENERATED:
        pieces = list(GENERATED[name].chunks(seed=0))
        source = np.concatenate([piece.source for piece in pieces])
        target = np.concatenate([piece.target for piece in pieces])
    else:
        folder = Path(os.environ.get("PEG_DATA_DIR", "../shared/data")) / name
        table = pq.read_table(folder / "edges.parquet", columns=["src", "dst"])
        source, target = table["src"].to_numpy(), table["dst"].to_numpy()
    nodes = int(max(source.max(), target.max())) + 1
    return largest_component(GraphStore.from_edges(source, target, num_nodes=nodes))


def largest_component(graph: GraphStore) -> GraphStore:
    _, labels = connected_components(graph)
    nodes = np.flatnonzero(labels == np.argmax(np.bincount(labels)))
    return induced_component(graph, nodes)


def change_edges(graph: GraphStore, share: float) -> GraphStore:
    """Replace a share of the edges by random ones; a spanning tree stays: still connected."""
    stream = random_stream(seed=0, purpose="changed edges")
    source, target = graph.edges()
    tree = scipy.sparse.csgraph.breadth_first_tree(graph.adjacency(), 0, directed=False).tocoo()
    ends = np.sort(np.stack(tree.coords).astype(np.int64), axis=0)
    keys = source.astype(np.int64) * graph.num_nodes + target
    free = np.flatnonzero(~np.isin(keys, ends[0] * graph.num_nodes + ends[1]))
    count = min(int(share * len(source)), len(free))
    keep = np.ones(len(source), dtype=np.bool_)
    keep[stream.choice(free, count, replace=False)] = False
    new = stream.integers(0, graph.num_nodes, (2, count))
    return GraphStore.from_edges(
        np.concatenate([source[keep], new[0]]),
        np.concatenate([target[keep], new[1]]),
        num_nodes=graph.num_nodes,
    )


def memory_bytes(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    return 0


def run_eigsh(graph: GraphStore, matrix: Any, dimensions: int, tolerance: float) -> Any:
    start = random_stream(seed=0, purpose="benchmark").standard_normal(graph.num_nodes)
    return scipy.sparse.linalg.eigsh(matrix, k=dimensions + 1, which="LA", tol=tolerance, v0=start)


def run_peg(graph: GraphStore, dimensions: int, tolerance: float, start: Any = None) -> Any:
    return solve_component(
        graph,
        wanted=dimensions,
        extra=1,
        options=SolverOptions("auto", tolerance),
        stream=random_stream(seed=0, purpose="benchmark"),
        start=start,
    )


def compile_kernels(graph: GraphStore) -> None:
    """Load the compiled kernels: once per installation, not part of a solution."""
    path = np.arange(2_000)
    small = GraphStore.from_edges(path[:-1], path[1:], num_nodes=len(path))
    small = GraphStore(small.indptr, small.indices.astype(graph.indices.dtype))
    run_peg(small, 32, 1e-2)


def true_residuals(matrix: Any, vectors: Any) -> np.ndarray:
    """``||N u - (u.N u) u||`` in float64, a few columns at a time."""
    found = []
    for first in range(0, vectors.shape[1], 16):
        block = vectors[:, first : first + 16].astype(np.float64)
        block /= np.linalg.norm(block, axis=0)
        image = matrix @ block
        found.append(np.linalg.norm(image - block * (block * image).sum(axis=0), axis=0))
    return np.concatenate(found)


def measure(folder: Path, solver: str, dimensions: int, tolerance: float) -> dict[str, Any]:
    """One solution in this process."""
    graph = GraphStore.open(folder)
    matrix = scipy.sparse.eye_array(graph.num_nodes, format="csr") - normalised_laplacian(graph)
    compile_kernels(graph)
    warm = np.load(folder / "start.npy") if solver == "warm" else None
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    before = memory_bytes("VmRSS")
    wall, cpu = time.perf_counter(), time.process_time()
    if solver == "eigsh":
        values, vectors = run_eigsh(graph, matrix, dimensions, tolerance)
        order = np.argsort(-values)[1:]
        vectors, applications = vectors[:, order], 0
    else:
        pairs = run_peg(graph, dimensions, tolerance, warm)
        vectors, applications = pairs.vectors[:, :dimensions], pairs.applications
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = memory_bytes("VmHWM") - before
    if solver == "cold":
        np.save(folder / "start.npy", vectors)
    residual = float(true_residuals(matrix, vectors).max())
    return {
        "cpu": cpu,
        "wall": wall,
        "peak": peak,
        "residual": residual,
        "applications": applications,
    }


def measure_apart(folder: Path, solver: str, options: argparse.Namespace) -> dict[str, Any]:
    """The fastest of several solutions, each in a process of its own."""
    command = [sys.executable, __file__, "--measure", str(folder), solver]
    command += ["--dimensions", str(options.dimensions), "--tolerance", str(options.tolerance)]
    environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(options.threads))}
    runs = []
    for _ in range(options.repeats):
        done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    return min(runs, key=lambda run: run[options.clock])


def compare(name: str, options: argparse.Namespace, scratch: Path) -> float | None:
    """Measure one graph and print its row."""
    folder = scratch / name
    graph = build_graph(name)
    graph.save(folder)
    size = f"{name:14} {graph.num_nodes:>10,} {graph.num_edges:>11,}"
    ours = measure_apart(folder, "cold", options)
    theirs = None if options.only_peg else measure_apart(folder, "eigsh", options)
    ratio = None if theirs is None else theirs[options.clock] / ours[options.clock]
    for label, run in (("peg", ours), ("eigsh", theirs)):
        if run is not None:
            print(
                f"{size} {label:6} {run['cpu']:>9.2f} {run['wall']:>9.2f} "
                f"{run['peak'] / 2**20:>9.0f} {run['residual']:>10.1e}"
                + (f" {ratio:>7.1f}x" if label == "peg" and ratio else ""),
                flush=True,
            )
    if options.warm:
        changed = scratch / f"{name}-changed"
        change_edges(graph, 0.01).save(changed)
        again = measure_apart(changed, "cold", options)
        (folder / "start.npy").rename(changed / "start.npy")
        warm = measure_apart(changed, "warm", options)
        factor = again["applications"] / warm["applications"]
        print(
            f"{name}: after 1 % changed edges {again['applications']:,} applications cold, "
            f"{warm['applications']:,} from the earlier encoding: {factor:.1f}x fewer; "
            f"residual {warm['residual']:.1e}",
            flush=True,
        )
    return ratio


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = (*REAL, *GENERATED)
    parser.add_argument("--graphs", default=",".join(DEFAULT), help=f"of {', '.join(known)}")
    parser.add_argument("--dimensions", type=int, default=128)
    parser.add_argument("--tolerance", type=float, default=1e-3)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--clock", choices=("cpu", "wall"), default="cpu")
    parser.add_argument("--only-peg", action="store_true", help="leave eigsh out")
    parser.add_argument("--warm", action="store_true", help="solve again after 1 %% changed edges")
    parser.add_argument("--measure", nargs=2, metavar=("FOLDER", "SOLVER"), help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    if options.measure:
        folder, solver = Path(options.measure[0]), options.measure[1]
        print(json.dumps(measure(folder, solver, options.dimensions, options.tolerance)))
        return
    print(
        f"p = {options.dimensions}, tolerance {options.tolerance}, {options.threads} thread(s), "
        f"speed-up by {options.clock} time"
    )
    print(
        f"{'graph':14} {'nodes':>10} {'edges':>11} solver {'cpu s':>9} {'wall s':>9} "
        f"{'peak MiB':>9} {'residual':>10} speed-up"
    )
    with tempfile.TemporaryDirectory() as scratch:
        ratios = [compare(name, options, Path(scratch)) for name in options.graphs.split(",")]
    known = [ratio for ratio in ratios if ratio is not None]
    print(f"ratio: {np.exp(np.mean(np.log(known))):.2f}" if known else "ratio: nan")


if __name__ == "__main__":
    main()
