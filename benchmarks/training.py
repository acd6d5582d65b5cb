"""Training links per second, against the same model in a PyG LinkNeighborLoader loop.

    python benchmarks/training.py
    python benchmarks/training.py --graph rmat --batch 1024 --steps 20

Two PEG layers of width 128, fan-out 15 and 10, positions and features of 128 columns, one
negative per link, Adam. The peer is written as PyG's documentation does: its loader, its
message passing, the gate as a module. Both use all threads. PyG's loader needs pyg-lib or
torch-sparse. The last line is our rate over the peer's.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import torch_geometric.typing
from sampling import load_graph
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.loader import LinkNeighborLoader
from torch_geometric.nn import MessagePassing

from peg_core.graph.graph_store import GraphStore
from peg_core.graph.node_features import NodeFeatures
from peg_core.models.model_spec import ModelSpec
from peg_core.models.peg import PEG
from peg_core.splits.held_out_pairs import HeldOutPairs
from peg_core.splits.split_store import SplitStore
from peg_core.training.link_schedule import LinkSchedule
from peg_core.training.link_trainer import LinkTrainer, PairLogits
from peg_core.training.sampled_view import SampledView
from peg_core.training.settings import Optimisation
from peg_core.training.step_source import SampledSource

WIDTH = 128
FAN_OUTS = [15, 10]


class PlainConv(MessagePassing):
    """PEG's layer as one writes it with PyG."""

    def __init__(self) -> None:
        super().__init__(aggr="add")
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.residual = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate = nn.Sequential(nn.Linear(1, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid())

    def forward(self, x: Tensor, z: Tensor, edge_index: Tensor, norm: Tensor) -> Tensor:
        distance = (z[edge_index[0]] - z[edge_index[1]]).norm(dim=-1, keepdim=True)
        weight = norm * self.gate(distance).squeeze(-1)
        return self.propagate(edge_index, x=self.linear(x), weight=weight) + self.residual(x)

    def message(self, x_j: Tensor, weight: Tensor) -> Tensor:
        return weight.unsqueeze(-1) * x_j


class PlainModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([PlainConv(), PlainConv()])
        self.head = nn.Sequential(nn.Linear(WIDTH + 3, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, batch: Data) -> Tensor:
        degrees = batch.degree
        source, target = batch.edge_index
        norm = (degrees[source] * degrees[target]).rsqrt()
        loops = torch.arange(batch.num_nodes).repeat(2, 1)
        edges = torch.cat([batch.edge_index, loops], dim=1)
        norm = torch.cat([norm, 1 / degrees])
        x = self.layers[0](batch.x, batch.z, edges, norm).relu()
        x = self.layers[1](x, batch.z, edges, norm)
        u, v = batch.edge_label_index
        inner = (batch.z[u] * batch.z[v]).sum(-1)
        squared = (batch.z[u] - batch.z[v]).square().sum(-1)
        cosine = inner / (batch.z[u].norm(dim=-1) * batch.z[v].norm(dim=-1)).clamp_min(1e-12)
        geometry = torch.stack([inner, squared, cosine], dim=-1)
        return self.head(torch.cat([x[u] * x[v], geometry], dim=-1)).squeeze(-1)


def run_peer(graph: GraphStore, x: np.ndarray, z: np.ndarray, options: argparse.Namespace) -> float:
    rows = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    data = Data(
        x=torch.from_numpy(x),
        z=torch.from_numpy(z),
        degree=torch.from_numpy(1.0 + graph.weighted_degrees).float(),
        edge_index=torch.from_numpy(np.stack([graph.indices.astype(np.int64), rows])),
    )
    links = torch.from_numpy(np.stack(graph.edges()).astype(np.int64))
    loader = LinkNeighborLoader(
        data,
        num_neighbors=FAN_OUTS,
        edge_label_index=links,
        neg_sampling="binary",
        batch_size=options.batch,
        shuffle=True,
    )
    model = PlainModel()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    start = 0.0
    for step, batch in enumerate(itertools.islice(loader, options.steps + 2)):
        if step == 2:
            start = time.perf_counter()
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(batch), batch.edge_label)
        loss.backward()
        optimizer.step()
    return options.steps * options.batch / (time.perf_counter() - start)


def run_ours(
    graph: GraphStore, x: np.ndarray, z: np.ndarray, options: argparse.Namespace, folder: Path
) -> float:
    split = SplitStore(folder)
    entries = np.zeros(2 * graph.num_edges, dtype=np.uint8)
    split.write_train(graph, entries, np.arange(graph.num_nodes), folds=1, seed=0)
    spec = ModelSpec("peg", "best", WIDTH, 1, hidden=WIDTH, head="mlp", encoding_widths=(WIDTH,))
    model = PEG(spec)
    model.dropout = model.input_dropout = 0.0
    view = SampledView.of(split.train_graph(), [z], NodeFeatures("node", x), model)
    schedule = LinkSchedule(split, folds=1, seed=0, batch_size=options.batch)
    source = SampledSource(schedule, lambda _: view, fan_outs=FAN_OUTS, seed=0)
    pairs = HeldOutPairs(np.array([0, 0]), np.array([1, 2]), np.array([1, 0], np.uint8))
    trainer = LinkTrainer(
        PairLogits(model),
        torch.optim.Adam(model.parameters(), lr=0.01),
        source,
        pairs,
        seed=0,
        device=torch.device("cpu"),
        optimisation=Optimisation(average=0.0),
    )
    trainer.network.train()
    start = 0.0
    for number, step in enumerate(itertools.islice(source.steps(0), options.steps + 2)):
        if number == 2:
            start = time.perf_counter()
        trainer._gradients(step)
        trainer._move()
    return options.steps * options.batch / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graph", default="map-of-github", help="of the data folder, or rmat")
    parser.add_argument("--batch", type=int, default=1024, help="links of a step")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    graph = load_graph(options.graph)
    rng = np.random.default_rng(0)
    x, z = (rng.normal(size=(graph.num_nodes, WIDTH)).astype(np.float32) for _ in range(2))
    print(f"{options.graph}: {graph.num_nodes:,} nodes, {graph.num_edges:,} edges, {FAN_OUTS}")
    with tempfile.TemporaryDirectory() as folder:
        ours = max(run_ours(graph, x, z, options, Path(folder)) for _ in range(options.repeats))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{'ours':24} {ours:10,.0f} links/s  peak {peak:.2f} GiB with graph and features")
    if not (torch_geometric.typing.WITH_PYG_LIB or torch_geometric.typing.WITH_TORCH_SPARSE):
        print("peer: PyG's loader needs pyg-lib or torch-sparse, neither is installed")
        print("ratio: nan")
        return
    theirs = max(run_peer(graph, x, z, options) for _ in range(options.repeats))
    print(f"{'PyG LinkNeighborLoader':24} {theirs:10,.0f} links/s")
    print(f"ratio: {ours / theirs:.2f}")


if __name__ == "__main__":
    main()
