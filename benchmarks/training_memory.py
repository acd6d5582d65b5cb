"""Memory of sampled training as the graph gets more edges, against PyG's link loader.

    python benchmarks/training_memory.py
    python benchmarks/training_memory.py --edges 1000000,4000000 --steps 5

R-MAT graphs with one number of nodes and more and more edges, two folds. Ours opens the
split as a train worker does (the graph without the fold that supervises, the count of
leaks), trains two PEG layers, fan-out 15 and 10, and validates. The peer builds the
LinkNeighborLoader of PyG's documentation on the same edges and draws nothing. Each runs in a
process of its own. What counts is private memory (RssAnon): pages of mapped files are the
system's to drop. The last line is the peer's bytes per further edge over ours.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

WIDTH = 32
FAN_OUTS = [15, 10]
FOLDS = 2


def write_split(folder: Path, nodes: int, edges: int) -> int:
    """A split of an R-MAT graph, positions and features, as the pipeline leaves them."""
    from peg_core.generators.random_graphs import RecursiveMatrix
    from peg_core.graph.graph_store import GraphStore
    from peg_core.splits.held_out_pairs import HeldOutPairs
    from peg_core.splits.split_store import SplitStore

    pieces = list(RecursiveMatrix(nodes, edges).chunks(seed=0))
    ends = [np.concatenate([getattr(p, end) for p in pieces]) for end in ("source", "target")]
    graph = GraphStore.from_edges(*ends, num_nodes=nodes)
    split = SplitStore(folder)
    entries = np.zeros(2 * graph.num_edges, dtype=np.uint8)
    split.write_train(graph, entries, np.arange(nodes), folds=FOLDS, seed=0)
    rng = np.random.default_rng(0)
    for part in ("valid", "test"):  # pairs of nodes that are no edges: nothing leaks
        pairs = rng.integers(0, nodes, (2, graph.num_edges // 10))
        pairs = pairs[:, ~graph.contains(*pairs)]
        label = (np.arange(pairs.shape[1]) < pairs.shape[1] // 2).astype(np.uint8)
        split.write_held_out(part, HeldOutPairs(*pairs, label))
    for name in ("positions", "features"):
        np.save(folder / f"{name}.npy", rng.normal(size=(nodes, WIDTH)).astype(np.float32))
    return graph.num_edges


def run_ours(folder: Path, steps: int) -> None:
    import torch

    from peg_core.graph.node_features import NodeFeatures
    from peg_core.models.model_spec import ModelSpec
    from peg_core.models.peg import PEG
    from peg_core.splits.fold_graph import open_fold_graph
    from peg_core.splits.leak_check import require_no_leaks
    from peg_core.splits.split_store import SplitStore
    from peg_core.training.link_schedule import LinkSchedule
    from peg_core.training.link_trainer import LinkTrainer, PairLogits
    from peg_core.training.sampled_view import SampledView
    from peg_core.training.settings import Optimisation
    from peg_core.training.step_source import SampledSource
    from workers.tasks.training.training_setup import MOST_VALID_PAIRS

    split = SplitStore(folder)
    x, z = (np.load(folder / f"{name}.npy", mmap_mode="c") for name in ("features", "positions"))
    model = PEG(ModelSpec("peg", "best", WIDTH, 1, hidden=WIDTH, encoding_widths=(WIDTH,)))

    def view_of(fold: int) -> SampledView:
        graph = open_fold_graph(split, fold, folder / "scratch")
        require_no_leaks(graph, split.hidden_links(fold), found_in="the messages")
        return SampledView.of(graph, [z], NodeFeatures("node", x), model)

    schedule = LinkSchedule(split, folds=FOLDS, seed=0, batch_size=1024)
    trainer = LinkTrainer(
        PairLogits(model),
        torch.optim.Adam(model.parameters(), lr=0.005),
        SampledSource(schedule, view_of, fan_outs=FAN_OUTS, seed=0),
        split.held_out("valid", most=MOST_VALID_PAIRS),
        seed=0,
        device=torch.device("cpu"),
        optimisation=Optimisation(average=0.0),
    )
    trainer.network.train()
    for step in itertools.islice(trainer.source.steps(0), steps):
        trainer._gradients(step)
        trainer._move()
    trainer.validate()


def run_peer(folder: Path, _: int) -> None:
    import torch
    from torch_geometric.data import Data
    from torch_geometric.loader import LinkNeighborLoader

    from peg_core.splits.split_store import SplitStore

    source, target = (torch.from_numpy(np.array(end)).long() for end in SplitStore(folder).links())
    links = torch.stack([source, target])
    data = Data(
        x=torch.from_numpy(np.load(folder / "features.npy")),
        z=torch.from_numpy(np.load(folder / "positions.npy")),
        edge_index=torch.cat([links, links.flip(0)], dim=1),
    )
    LinkNeighborLoader(data, FAN_OUTS, edge_label_index=links, neg_sampling="binary")


RUNS: dict[str, Callable[[Path, int], None]] = {"ours": run_ours, "PyG": run_peer}


def private_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return 1024 * int(line.split()[1])
    raise RuntimeError("/proc/self/status has no RssAnon; this benchmark needs Linux")


def measure(name: str, folder: Path, steps: int) -> int:
    """The most private memory that a run has, in this process."""
    peak, ended = [0], threading.Event()

    def watch() -> None:
        while not ended.is_set():
            peak[0] = max(peak[0], private_bytes())
            time.sleep(0.005)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        RUNS[name](folder, steps)
    finally:
        ended.set()
        watcher.join()
    return peak[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", default="8000000,32000000", help="drawn, commas between")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)  # in a process of its own
    options = parser.parse_args()
    if options.run:
        name, folder = options.run
        print(measure(name, Path(folder), options.steps))
        return
    print(f"{'edges':>12} {'ours, MB':>10} {'PyG, MB':>10}")
    rows = []
    for edges in map(int, options.edges.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            found = write_split(Path(folder), options.nodes, edges)
            peaks = []
            for name in RUNS:
                command = [sys.executable, __file__, "--run", name, folder]
                command += ["--steps", str(options.steps)]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                peaks.append(int(done.stdout.split()[-1]))
        rows.append((found, *peaks))
        print(f"{found:12,} {peaks[0] / 1e6:10,.0f} {peaks[1] / 1e6:10,.0f}", flush=True)
    more = rows[-1][0] - rows[0][0]
    ours, theirs = ((rows[-1][k] - rows[0][k]) / more for k in (1, 2))
    print(f"bytes per further edge: ours {ours:.2f}, PyG {theirs:.2f}")
    print(f"ratio: {theirs / max(ours, 0.01):.1f}")


if __name__ == "__main__":
    main()
