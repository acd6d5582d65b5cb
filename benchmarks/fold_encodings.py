"""Eigenmaps of graphs without a fold: from random vectors, or from those of the whole graph.

    python benchmarks/fold_encodings.py
    python benchmarks/fold_encodings.py --graphs map-of-github --measured 1

CPU seconds of one thread. Errors are those of squared distances against a solve at 1e-5, on
random pairs and on links of the fold that is left out: root mean square, and for the fold the
mean, relative to the mean distance. A negative mean says that a link which should be unseen has
drawn its ends together. The last line is the cost of all ten folds, each by its cheaper way,
over that of one whole solve; the geometric mean over the graphs.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.eigenmaps import GENERATED, build_graph, compile_kernels, largest_component
from peg_core.encoding.spectral.eigenpairs import Eigenpairs
from peg_core.encoding.spectral.solver import SolverOptions, solve_component
from peg_core.generators.random_graphs import DegreeCorrectedBlockModel
from peg_core.graph.components import connected_components
from peg_core.graph.graph_store import GraphStore
from peg_core.random_streams import random_stream

FOLDS = 10
PAIRS = 50_000
# 99 eigenvalues stand out of 100 blocks: p = 128 has no gap; of 129 blocks 128 do
GENERATED["dcsbm-100k"] = DegreeCorrectedBlockModel(100_000, 1_000_000, blocks=100)
GENERATED["dcsbm-gap-100k"] = DegreeCorrectedBlockModel(100_000, 1_000_000, blocks=129)


def solve(
    graph: GraphStore, dimensions: int, tolerance: float, start: np.ndarray | None = None
) -> tuple[Eigenpairs, float]:
    begin = time.process_time()
    pairs = solve_component(
        graph,
        wanted=dimensions,
        extra=1,
        options=SolverOptions("auto", tolerance),
        stream=random_stream(seed=0, purpose="benchmark"),
        start=start,
    )
    return pairs, time.process_time() - begin


def squared_distances(pairs: Eigenpairs, dimensions: int, ends: np.ndarray) -> np.ndarray:
    """Of positions as the default preset scales them, [pairs]."""
    columns = pairs.vectors[:, :dimensions] / np.sqrt(pairs.values[:dimensions])
    columns /= np.linalg.norm(columns, axis=1, keepdims=True)
    return ((columns[ends[0]] - columns[ends[1]]) ** 2).sum(axis=1)


def measure_fold(
    graph: GraphStore, fold: int, whole: Eigenpairs, options: argparse.Namespace
) -> float:
    """Print both ways for one fold; the seconds of the cheaper one."""
    stream = random_stream(seed=0, purpose="folds of a benchmark")
    ends = np.stack(graph.edges())
    left_out = stream.integers(0, FOLDS, ends.shape[1]) == fold
    rest = GraphStore.from_edges(*ends[:, ~left_out], num_nodes=graph.num_nodes)
    part, nodes = largest_component(rest), largest_nodes(rest)
    number = np.full(graph.num_nodes, -1)
    number[nodes] = np.arange(len(nodes))
    links = number[ends[:, left_out]]
    links = links[:, (links >= 0).all(axis=0)][:, :PAIRS]
    random = stream.integers(0, part.num_nodes, (2, PAIRS))
    tight, _ = solve(part, options.dimensions, 1e-5)
    seconds = []
    for label in ("cold", "warm"):
        start = whole.vectors[nodes][:, : options.dimensions] if label == "warm" else None
        pairs, cost = solve(part, options.dimensions, options.tolerance, start)
        seconds.append(cost)
        row = f"  fold {fold} {label:5} {cost:8.2f} {pairs.applications:8,} "
        row += f"{pairs.residuals[: options.dimensions].max():9.1e}"
        for kind in (random, links):
            exact = squared_distances(tight, options.dimensions, kind)
            error = squared_distances(pairs, options.dimensions, kind) - exact
            row += f" {np.sqrt((error**2).mean() / (exact**2).mean()):9.1e}"
        print(f"{row} {error.mean() / exact.mean():+9.1e}  {pairs.solver}", flush=True)
    return min(seconds)


def largest_nodes(graph: GraphStore) -> np.ndarray:
    _, labels = connected_components(graph)
    return np.flatnonzero(labels == np.argmax(np.bincount(labels)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", default="dcsbm-100k,dcsbm-gap-100k")
    parser.add_argument("--dimensions", type=int, default=128)
    parser.add_argument("--tolerance", type=float, default=1e-3)
    parser.add_argument("--measured", type=int, default=2, help="folds that are solved, of ten")
    options = parser.parse_args()
    print("graph, solve       cpu s products  residual    random      fold fold mean")
    ratios = []
    for name in options.graphs.split(","):
        graph = build_graph(name)
        compile_kernels(graph)
        whole, cost = solve(graph, options.dimensions, options.tolerance)
        print(f"{name}: {graph.num_nodes:,} nodes, {graph.num_edges:,} edges")
        print(f"  whole        {cost:8.2f} {whole.applications:8,} {whole.residuals.max():9.1e}")
        folds = [measure_fold(graph, fold, whole, options) for fold in range(options.measured)]
        ratios.append(FOLDS * float(np.mean(folds)) / cost)
        print(f"  all {FOLDS} folds, from {options.measured}: {ratios[-1]:.1f} whole solves")
    print(f"ratio: {np.exp(np.mean(np.log(ratios))):.2f}")


if __name__ == "__main__":
    main()
