"""Neighbour sampling against PyG's compiled sampler on the same graph and seeds.

    python benchmarks/sampling.py
    python benchmarks/sampling.py --graph rmat --batches 40

The peer is the kernel that PyG's loaders call: pyg-lib or torch-sparse, whichever is
installed. Sampled edges per second; the last line is ours on one thread over the peer.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
import torch_geometric.typing

from peg_core.generators.random_graphs import RecursiveMatrix
from peg_core.graph.graph_store import GraphStore
from peg_core.sampling.neighbour_sampler import NeighbourSampler


def load_graph(name: str) -> GraphStore:
    """map-of-github from the data folder, or a generated heavy-tailed graph."""
    if name == "rmat":
        pieces = list(RecursiveMatrix(450_000, 1_650_000).chunks(seed=0))
        source = np.concatenate([piece.source for piece in pieces])
        target = np.concatenate([piece.target for piece in pieces])
    else:
        folder = Path(os.environ.get("PEG_DATA_DIR", "../shared/data")) / name
        table = pq.read_table(folder / "edges.parquet", columns=["src", "dst"])
        source, target = table["src"].to_numpy(), table["dst"].to_numpy()
    nodes = int(max(source.max(), target.max())) + 1
    return GraphStore.from_edges(source, target, num_nodes=nodes)


def peer(graph: GraphStore, fan_outs: list[int]) -> tuple[str, Callable[[np.ndarray], int]] | None:
    """PyG's kernel, as its NeighborSampler calls it; returns the edges of a sample."""
    rows = torch.from_numpy(np.array(graph.indptr, dtype=np.int64))
    columns = torch.from_numpy(np.array(graph.indices, dtype=np.int64))
    if torch_geometric.typing.WITH_PYG_LIB:
        return "pyg-lib", lambda seeds: len(
            torch.ops.pyg.neighbor_sample(rows, columns, torch.from_numpy(seeds), fan_outs)[0]
        )
    if torch_geometric.typing.WITH_TORCH_SPARSE:
        return "torch-sparse", lambda seeds: len(
            torch.ops.torch_sparse.neighbor_sample(
                rows, columns, torch.from_numpy(seeds), fan_outs, False, True
            )[1]
        )
    return None


def rate(draw: Callable[[list[np.ndarray]], int], batches: list[np.ndarray], repeats: int) -> float:
    """Edges per second, the best of several passes over the batches."""
    draw(batches[:1])
    best = 0.0
    for _ in range(repeats):
        start = time.perf_counter()
        edges = draw(batches)
        best = max(best, edges / (time.perf_counter() - start))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graph", default="map-of-github", help="of the data folder, or rmat")
    parser.add_argument("--fan-outs", default="15,10")
    parser.add_argument("--seeds", type=int, default=4096, help="nodes of a batch")
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    fan_outs = [int(text) for text in options.fan_outs.split(",")]
    graph = load_graph(options.graph)
    rng = np.random.default_rng(0)
    batches = [
        rng.choice(graph.num_nodes, options.seeds, replace=False) for _ in range(options.batches)
    ]

    def ours(parts: list[np.ndarray]) -> int:
        sampler = NeighbourSampler(graph, fan_outs)
        return sum(len(sampler.sample(part, seed=n).sources) for n, part in enumerate(parts))

    def ours_twice(parts: list[np.ndarray]) -> int:
        with ThreadPoolExecutor(2) as pool:
            return sum(pool.map(ours, [parts[::2], parts[1::2]]))

    print(f"{options.graph}: {graph.num_nodes:,} nodes, {graph.num_edges:,} edges, {fan_outs}")
    one, two = (rate(draw, batches, options.repeats) for draw in (ours, ours_twice))
    print(f"{'ours, 1 thread':20} {one / 1e6:8.2f} M edges/s")
    print(f"{'ours, 2 threads':20} {two / 1e6:8.2f} M edges/s  {two / one:.2f}x")
    found = peer(graph, fan_outs)
    if found is None:
        print("peer: neither pyg-lib nor torch-sparse is installed")
        print("ratio: nan")
        return
    name, sample = found
    theirs = rate(lambda parts: sum(map(sample, parts)), batches, options.repeats)
    print(f"{name + ', 1 thread':20} {theirs / 1e6:8.2f} M edges/s")
    print(f"ratio: {one / theirs:.2f}")


if __name__ == "__main__":
    main()
