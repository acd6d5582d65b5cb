"""Encoding a grown graph: from scratch against from the earlier eigenvectors.

    python benchmarks/refresh.py
    python benchmarks/refresh.py --nodes 20000 --edges 200000 --blocks 33

A block model of BLOCKS blocks is encoded with BLOCKS - 1 dimensions, where its spectrum has a
gap; then 2 % new edges and as many new nodes as --new-nodes come, and it is encoded again both
ways. The last line is how many times fewer products with the graph the warm start takes, the
estimate of the next eigenvalue included.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from peg_core.encoding.laplacian_eigenmaps import LaplacianEigenmaps
from peg_core.encoding.spectral.spectrum import Spectrum
from peg_core.encoding.spectral.warm_start import (
    start_vectors,
    vectors_to_keep,
    was_refined,
    with_next_eigenvalue,
)
from peg_core.generators.random_graphs import StochasticBlockModel
from peg_core.graph.graph_store import GraphStore
from peg_core.random_streams import random_stream


def build_graphs(options: argparse.Namespace) -> tuple[GraphStore, GraphStore]:
    """The graph, and the same with new edges from the same model and new nodes at the end."""
    model = StochasticBlockModel(options.nodes, options.edges, blocks=options.blocks)
    more = round(options.share * options.edges)
    grown = StochasticBlockModel(options.nodes, more, blocks=options.blocks)
    sides = [
        [
            np.concatenate([getattr(piece, side) for piece in pieces])
            for side in ("source", "target")
        ]
        for pieces in (list(model.chunks(seed=0)), list(grown.chunks(seed=1)))
    ]
    rng = random_stream(seed=0, purpose="new nodes")
    nodes = options.nodes + np.repeat(np.arange(options.new_nodes), 3)
    sides.append([nodes, rng.integers(0, options.nodes, len(nodes))])
    before = GraphStore.from_edges(*sides[0], num_nodes=options.nodes)
    together = [np.concatenate(ends) for ends in zip(*sides, strict=True)]
    total = options.nodes + options.new_nodes
    return before, GraphStore.from_edges(*together, num_nodes=total)


def solve_warm(encoder: LaplacianEigenmaps, graph: GraphStore, vectors: np.ndarray) -> Spectrum:
    known = np.arange(graph.num_nodes) < len(vectors)
    earlier = np.zeros((graph.num_nodes, vectors.shape[1]), dtype=np.float32)
    earlier[: len(vectors)] = vectors
    found = encoder.find_spectrum(graph, seed=0, start=start_vectors(graph, earlier, known))
    return with_next_eigenvalue(graph, found, seed=0) if was_refined(found) else found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--blocks", type=int, default=129)
    parser.add_argument("--share", type=float, default=0.02, help="new edges")
    parser.add_argument("--new-nodes", type=int, default=100)
    options = parser.parse_args(arguments)
    before, after = build_graphs(options)
    encoder = LaplacianEigenmaps(dimensions=options.blocks - 1)
    vectors = vectors_to_keep(encoder.find_spectrum(before, seed=0))
    print(f"{before.num_edges:,} edges, then {after.num_edges:,}; p = {options.blocks - 1}")
    print(f"{'start':8} {'products':>10} {'seconds':>9} {'residual':>10}  solver")
    applications = []
    for name in ("cold", "warm"):
        clock = time.perf_counter()
        if name == "cold":
            spectrum = encoder.find_spectrum(after, seed=0)
        else:
            spectrum = solve_warm(encoder, after, vectors)
        seconds = time.perf_counter() - clock
        applications.append(spectrum.applications)
        residual, solvers = spectrum.residuals.max(), "+".join(spectrum.solvers)
        row = f"{spectrum.applications:>10,} {seconds:>9.2f} {residual:>10.1e}"
        print(f"{name:8} {row}  {solvers}", flush=True)
    print(f"ratio: {applications[0] / applications[1]:.2f}")


if __name__ == "__main__":
    main()
