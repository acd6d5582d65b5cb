"""Steps per second of preparation alone against computation alone, in sampled training.

    python benchmarks/preparation.py
    python benchmarks/preparation.py --nodes 2000000 --edges 16000000 --threads 1,2,4

A generated R-MAT graph, two PEG layers of width 128, fan-out 15 and 10, positions and features
of 128 columns, one non-link per link. Preparation draws links, non-links and samples, and gathers
their rows; it runs in threads while a step is computed. Computation is forward, backward and
Adam on steps that are ready. Each is measured while the other rests: side by side on one CPU
they would only share it. The last line is the rate of preparation with the most threads over
that of computation: above 1, it keeps ahead.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from collections import deque
from pathlib import Path

import numpy as np
import torch

from peg_core.generators.random_graphs import RecursiveMatrix
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.node_features import NodeFeatures
from peg_core.kernels.compiled_loops import compiled_loops
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
CPU = torch.device("cpu")


def generated(nodes: int, edges: int) -> GraphStore:
    pieces = list(RecursiveMatrix(nodes, edges).chunks(seed=0))
    ends = [np.concatenate([getattr(p, end) for p in pieces]) for end in ("source", "target")]
    return GraphStore.from_edges(*ends, num_nodes=nodes)


def make_trainer(split: SplitStore, batch: int, threads: int) -> LinkTrainer:
    graph = split.train_graph()
    rng = np.random.default_rng(0)
    x, z = (rng.random((graph.num_nodes, WIDTH), dtype=np.float32) - 0.5 for _ in range(2))
    torch.manual_seed(0)
    model = PEG(ModelSpec("peg", "best", WIDTH, 1, hidden=WIDTH, encoding_widths=(WIDTH,)))
    view = SampledView.of(graph, [z], NodeFeatures("node", x), model)
    schedule = LinkSchedule(split, folds=1, seed=0, batch_size=batch)
    pairs = HeldOutPairs(np.array([0, 0]), np.array([1, 2]), np.array([1, 0], np.uint8))
    return LinkTrainer(
        PairLogits(model),
        torch.optim.Adam(model.parameters(), lr=0.005),
        SampledSource(schedule, lambda _: view, fan_outs=FAN_OUTS, seed=0, threads=threads),
        pairs,
        seed=0,
        device=CPU,
        optimisation=Optimisation(),
    )


def preparation_rate(trainer: LinkTrainer, steps: int) -> float:
    """Steps per second that nobody computes; those that threads hold ahead are not counted."""
    ready = trainer.source.steps(0)
    deque(itertools.islice(ready, 2), maxlen=0)
    start = time.perf_counter()
    deque(itertools.islice(ready, steps), maxlen=0)
    return steps / (time.perf_counter() - start)


def computation_rate(trainer: LinkTrainer, steps: int, *, compiled: bool) -> float:
    """Steps per second where all of them are ready."""
    ready = list(itertools.islice(trainer.source.steps(0), steps + 1))
    trainer.network.train()
    with compiled_loops(allowed=compiled):
        start = 0.0
        for number, step in enumerate(ready):
            if number == 1:
                start = time.perf_counter()
            trainer._gradients(step)
            trainer._move()
    return steps / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=450_000)
    parser.add_argument("--edges", type=int, default=1_650_000)
    parser.add_argument("--batch", type=int, default=1024, help="links of a step")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--threads", default="1,2", help="threads that prepare")
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    graph = generated(options.nodes, options.edges)
    print(f"rmat: {graph.num_nodes:,} nodes, {graph.num_edges:,} edges, {FAN_OUTS}")
    with tempfile.TemporaryDirectory() as folder:
        split = SplitStore(Path(folder))
        everything = np.zeros(2 * graph.num_edges, dtype=np.uint8)
        split.write_train(graph, everything, np.arange(graph.num_nodes), folds=1, seed=0)
        prepared = 0.0
        for threads in map(int, options.threads.split(",")):
            trainer = make_trainer(split, options.batch, threads)
            rates = [preparation_rate(trainer, options.steps) for _ in range(options.repeats)]
            prepared = max(rates)
            print(f"{f'preparation, {threads} threads':32} {prepared:8.2f} steps/s")
        trainer = make_trainer(split, options.batch, 1)
        computed = {}
        for way, compiled in (("compiled loops", True), ("generic path", False)):
            computed[way] = max(
                computation_rate(trainer, options.steps, compiled=compiled)
                for _ in range(options.repeats)
            )
            print(f"{f'computation, {way}':32} {computed[way]:8.2f} steps/s")
    ratio = prepared / computed["compiled loops"]
    print(f"preparation {'keeps' if ratio > 1 else 'does not keep'} ahead of this machine")
    print(f"ratio: {ratio:.2f}")


if __name__ == "__main__":
    main()
