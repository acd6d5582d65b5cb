"""Embed all nodes of a graph layer by layer: our tasks' code beside PyG's inference loop.

    python benchmarks/embed.py
    python benchmarks/embed.py --nodes 1000000 --edges 10000000

The peer is the loop of PyG's layer-wise inference examples, with all neighbours: for every
batch of nodes take their rows of the graph, number the neighbours, gather their states, run
the layer. (PyG's NeighborLoader does the first two steps, where pyg-lib is installed.) It is
given the lengths of the edges of a batch by numpy, as training computes them. Both run in one
process with the same threads; the results are compared.
"""

from __future__ import annotations

import argparse
import time

import numba
import numpy as np
import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing

from peg_core.generators.random_graphs import RecursiveMatrix
from peg_core.graph.graph_store import GraphStore
from peg_core.inference.layerwise_embedding import LayerwiseEmbedding
from peg_core.layers.edge_rule import EdgeRule
from peg_core.layers.peg_conv import PEGConv
from peg_core.models.model_spec import ModelSpec
from peg_core.models.peg import PEG

WIDTH = 128


def build_graph(nodes: int, edges: int) -> GraphStore:
    chunks = list(RecursiveMatrix(nodes, edges).chunks(seed=0))
    source = np.concatenate([chunk.source for chunk in chunks])
    target = np.concatenate([chunk.target for chunk in chunks])
    return GraphStore.from_edges(source, target, num_nodes=nodes)


def embed(model: PEG, graph: GraphStore, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    embedding = LayerwiseEmbedding(model, graph, [z])
    state = x
    for layer in range(len(model.layers)):
        out = np.empty((graph.num_nodes, WIDTH), dtype=np.float32)
        embedding.fill(layer, state, 0, graph.num_nodes, out)
        state = out
    return state


class LoopLayer(MessagePassing):
    """A trained layer as PyG's message passing runs it."""

    def __init__(self, layer: PEGConv) -> None:
        super().__init__(aggr="add")
        self.layer = layer

    def forward(
        self, x: tuple[Tensor, Tensor], edge_index: Tensor, norm: Tensor, distances: Tensor
    ) -> Tensor:
        sources, targets = x
        weight = norm * self.layer.gate(distances)
        size = (len(sources), len(targets))
        sent = (self.layer.linear(sources), None)
        out = self.propagate(edge_index, x=sent, weight=weight, size=size)
        return out + self.layer.bias + self.layer.residual(targets)

    def message(self, x_j: Tensor, weight: Tensor) -> Tensor:
        return weight.unsqueeze(-1) * x_j


@torch.no_grad()
def embed_in_batches(
    model: PEG, graph: GraphStore, x: np.ndarray, z: np.ndarray, batch: int
) -> np.ndarray:
    """PyG's loop: one layer after the other, a batch of nodes at a time."""
    degrees = torch.from_numpy(1.0 + graph.weighted_degrees).float()
    state = torch.from_numpy(x)
    relabel = torch.empty(graph.num_nodes, dtype=torch.int64)
    for number, layer in enumerate(model.layers):
        parts = []
        for start in range(0, graph.num_nodes, batch):
            stop = min(start + batch, graph.num_nodes)
            own = torch.arange(start, stop)
            rows = graph.csr_slice(start, stop)
            counts = torch.from_numpy(np.diff(rows.indptr))
            neighbours = torch.from_numpy(rows.indices.astype(np.int64))
            source = torch.cat([neighbours, own])
            target = torch.cat([torch.repeat_interleave(own, counts), own])
            nodes = source.unique()
            relabel[nodes] = torch.arange(len(nodes))
            edge_index = torch.stack([relabel[source], target - start])
            normalisation = (degrees[source] * degrees[target]).rsqrt()
            lengths = EdgeRule().edge_measures(z, source.numpy(), target.numpy())
            distances = torch.from_numpy(lengths).unsqueeze(-1)
            ends = (state[nodes], state[own])
            out = LoopLayer(layer)(ends, edge_index, normalisation, distances)
            parts.append(out if number == len(model.layers) - 1 else out.relu())
        state = torch.cat(parts)
    return state.numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--batches", default="4096", help="of the peer; the fastest counts")
    options = parser.parse_args()
    numba.set_num_threads(min(options.threads, numba.config.NUMBA_NUM_THREADS))
    torch.set_num_threads(options.threads)
    graph = build_graph(options.nodes, options.edges)
    rng = np.random.default_rng(0)
    x, z = (rng.standard_normal((options.nodes, WIDTH), dtype=np.float32) for _ in range(2))
    torch.manual_seed(0)
    model = PEG(ModelSpec("peg", "best", WIDTH, 1, WIDTH)).eval()
    small = GraphStore.from_edges([0, 1], [1, 2], num_nodes=3)
    small = GraphStore(small.indptr, small.indices.astype(graph.indices.dtype))
    embed(model, small, x[:3], z[:3])  # compile
    runs = {"ours": lambda: embed(model, graph, x, z)}
    for size in map(int, options.batches.split(",")):
        runs[f"PyG loop, batches of {size:,}"] = lambda size=size: embed_in_batches(
            model, graph, x, z, size
        )
    seconds = dict.fromkeys(runs, np.inf)
    results = {}
    for _ in range(options.repeats):
        for label, run in runs.items():
            start = time.perf_counter()
            results[label] = run()
            seconds[label] = min(seconds[label], time.perf_counter() - start)
    print(f"{graph.num_nodes:,} nodes, {graph.num_edges:,} edges, 2 layers of {WIDTH}")
    for label, taken in seconds.items():
        difference = np.abs(results[label] - results["ours"]).max()
        print(f"{label:28} {taken:8.2f} s  largest difference {difference:.1e}")
    print(f"ratio: {min(list(seconds.values())[1:]) / seconds['ours']:.2f}")


if __name__ == "__main__":
    main()
