"""DeepWalk, node2vec and LINE against gensim and PecanPy: time and held-out AUC.

    python benchmarks/walks.py                          # Cora, ca-astroph, DC-SBM of 100,000 nodes
    python benchmarks/walks.py --graphs cora,pubmed,twitch-pt --seeds 3 \
        --methods gensim,sgns,shared,netmf,netsmf       # quality

A tenth of the edges is held out; AUC of the cosine against as many random pairs without an edge.
Times are those of training or factorising; walks are counted for us and not for gensim, which
gets them ready. PecanPy pins an old NumPy and needs an environment of its own:

    python -m venv pecanpy && pecanpy/bin/pip install pecanpy
    python benchmarks/walks.py --pecanpy-python pecanpy/bin/python

With ``--results FILE`` measurements are kept and those in the file are not repeated.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow.parquet as pq
from sklearn.metrics import roc_auc_score

from peg_core.encoding import ENCODERS, DeepWalk, Encoder, Line, Node2Vec
from peg_core.encoding.walks.random_walks import WalkGraph, WalkRule, generate_walks
from peg_core.generators.random_graphs import DegreeCorrectedBlockModel
from peg_core.graph.graph_store import GraphStore
from peg_core.random_streams import random_stream

LENGTH, WINDOW, DIMENSIONS, NEGATIVES = 80, 10, 128, 5
GENERATED = {"dcsbm-100k": DegreeCorrectedBlockModel(100_000, 1_000_000, blocks=100)}
# gensim needs a quarter of an hour for ten walks per node of the largest: fewer for everybody.
WALKS = {"dcsbm-100k": 1}
DEFAULT_METHODS = "gensim,sgns,sgns-1,shared,netsmf,walks,walks-1,pecanpy,pecanpy-kernel"
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
PECANPY = """
import sys, time
import numpy as np
from pecanpy import pecanpy
graph = pecanpy.FirstOrderUnweighted(p=1, q=1, workers={threads}, random_state=0)
graph.read_npz({file!r}, weighted=False, implicit_ids=True)
graph._preprocess_transition_probs()
step, some = graph.get_move_forward(), graph.get_has_nbrs()
starts = np.concatenate([np.arange(graph.num_nodes, dtype=np.uint32)] * {walks})
def walk(nodes):
    with pecanpy.ProgressBar(total=nodes.size, disable=True) as progress:
        graph._random_walks(nodes.size, {length}, 0, nodes, some, step, progress)
def simulate(walks):
    graph.simulate_walks(num_walks=walks, walk_length={length})
work = (walk, starts, starts[:2]) if {kernel} else (simulate, {walks}, 1)
work[0](work[2])
wall, cpu = time.perf_counter(), time.process_time()
work[0](work[1])
print(time.perf_counter() - wall, time.process_time() - cpu)
"""


def encoders(walks: int) -> dict[str, Encoder]:
    """Our methods by name."""
    shared: dict[str, Any] = {"walks": walks, "walk_length": LENGTH, "window": WINDOW}
    return {
        "le": ENCODERS["le"](),
        "sgns": DeepWalk(solver="sgns", **shared),
        "shared": DeepWalk(solver="sgns", negatives="shared", **shared),
        "node2vec": Node2Vec(**shared),
        "line": Line(),
        "netmf": DeepWalk(solver="netmf"),
        "netmf-plain": DeepWalk(solver="netmf", propagate=False),
        "netsmf": DeepWalk(solver="netsmf"),
        "netsmf-plain": DeepWalk(solver="netsmf", propagate=False),
        "netsmf-10": DeepWalk(solver="netsmf", samples=10),
    }


def load_graph(name: str) -> GraphStore:
    if name in GENERATED:
        pieces = list(GENERATED[name].chunks(seed=0))
        source = np.concatenate([piece.source for piece in pieces])
        target = np.concatenate([piece.target for piece in pieces])
        return GraphStore.from_edges(source, target, num_nodes=GENERATED[name].nodes)
    folder = Path(os.environ.get("PEG_DATA_DIR", "../shared/data")) / name
    table = pq.read_table(folder / "edges.parquet", columns=["src", "dst"])
    source, target = table["src"].to_numpy(), table["dst"].to_numpy()
    nodes = int(max(source.max(), target.max())) + 1
    return GraphStore.from_edges(source, target, num_nodes=nodes)


def hold_out(graph: GraphStore, seed: int) -> tuple[GraphStore, np.ndarray, np.ndarray]:
    """The graph without a tenth of its edges, those edges, and as many pairs without one."""
    stream = random_stream(seed=seed, purpose="benchmark of walks")
    source, target = graph.edges()
    hidden = np.zeros(len(source), dtype=np.bool_)
    hidden[stream.choice(len(source), len(source) // 10, replace=False)] = True
    build = GraphStore.from_edges
    train = build(source[~hidden], target[~hidden], num_nodes=graph.num_nodes)
    others = stream.integers(0, graph.num_nodes, (2, 4 * hidden.sum() + 100))
    free = (others[0] != others[1]) & ~graph.contains(others[0], others[1])
    positive = np.stack([source[hidden], target[hidden]])
    return train, positive, others[:, free][:, : hidden.sum()]


def auc(positions: np.ndarray, positive: np.ndarray, negative: np.ndarray) -> float:
    length = np.linalg.norm(positions, axis=1, keepdims=True)
    unit = positions / np.maximum(length, 1e-12)
    ends = np.concatenate([positive, negative], axis=1)
    scores = np.einsum("ij,ij->i", unit[ends[0]], unit[ends[1]])
    truth = np.repeat([1, 0], [positive.shape[1], negative.shape[1]])
    return float(roc_auc_score(truth, scores))


def clock(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def all_walks(graph: GraphStore, walks: int, seed: int) -> list[np.ndarray]:
    nodes, rule = np.arange(graph.num_nodes), WalkRule(LENGTH)
    shared = WalkGraph.of(graph)
    return [generate_walks(shared, nodes, rule, seed=seed, number=i) for i in range(walks)]


def run_gensim(graph: GraphStore, walks: int, seed: int) -> tuple[np.ndarray, dict[str, float]]:
    from gensim.models import Word2Vec

    nodes = np.concatenate(all_walks(graph, walks, seed))
    nodes = nodes[random_stream(seed=seed, purpose="order of walks").permutation(len(nodes))]
    names = [str(node) for node in range(graph.num_nodes)]
    corpus = [[names[node] for node in walk if node >= 0] for walk in nodes.tolist()]
    model = Word2Vec(
        vector_size=DIMENSIONS,
        window=WINDOW,
        min_count=0,
        sg=1,
        negative=NEGATIVES,
        sample=0,
        workers=numba.get_num_threads(),
        epochs=1,
        seed=seed,
    )
    model.build_vocab(corpus)  # not counted either

    def train() -> None:
        model.train(corpus, total_examples=len(corpus), epochs=1)

    _, times = clock(train)
    return np.stack([model.wv[name] for name in names]), times


def measure(name: str, method: str, seed: int) -> dict[str, float]:
    """One method on one graph, in this process."""
    graph = load_graph(name)
    train, positive, negative = hold_out(graph, seed)
    walks = WALKS.get(name, 10)
    small = GraphStore.from_edges(np.arange(2_999), np.arange(1, 3_000), num_nodes=3_000)
    if method == "gensim":
        positions, times = run_gensim(train, walks, seed)
        return {**times, "auc": auc(positions, positive, negative)}
    if method.removesuffix("-1") == "walks":
        all_walks(small, 1, 0)
        return clock(lambda: all_walks(train, walks, seed))[1]
    encoder = encoders(walks)[method.removesuffix("-1")]
    encoder.solve(small, seed=0)  # kernels are compiled once per installation
    positions, times = clock(lambda: encoder.encode(train, seed=seed))
    return {**times, "auc": auc(positions, positive, negative)}


def measure_pecanpy(name: str, python: str, threads: int, *, kernel: bool) -> dict[str, float]:
    """First-order walks of PecanPy, in its own environment, through a file.

    Its function for walks returns lists of names, as word2vec wants them; ``kernel`` times
    the compiled loop inside of it alone.
    """
    train, _, _ = hold_out(load_graph(name), 0)
    with tempfile.TemporaryDirectory() as scratch:
        file = str(Path(scratch) / "graph.npz")
        data = np.ones(len(train.indices), dtype=np.float32)
        np.savez(file, indptr=train.indptr, indices=train.indices, data=data)
        walks = WALKS.get(name, 10)
        script = PECANPY.format(
            file=file, walks=walks, length=LENGTH, threads=threads, kernel=kernel
        )
        environment = {**os.environ, "NUMBA_NUM_THREADS": str(threads)}
        environment.pop("PYTHONPATH", None)
        command = [python, "-c", script]
        done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
    wall, cpu = map(float, done.stdout.split()[-2:])
    return {"wall": wall, "cpu": cpu}


def measure_apart(
    name: str, method: str, seed: int, options: argparse.Namespace
) -> dict[str, float] | None:
    """One measurement, in a process of its own."""
    threads = 1 if method.endswith("-1") else options.threads
    if method.startswith("pecanpy"):
        if options.pecanpy_python is None:
            print("no --pecanpy-python: its rows are left out", file=sys.stderr)
            return None
        return measure_pecanpy(
            name, options.pecanpy_python, threads, kernel=method == "pecanpy-kernel"
        )
    environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(threads))}
    command = [sys.executable, __file__, "--measure", name, method, str(seed)]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def collect(options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Measure what is asked for and not known; keys are ``graph/method/seed``."""
    known: dict[str, dict[str, float]] = {}
    if options.results and options.results.exists():
        known = json.loads(options.results.read_text())
    for name in options.graphs.split(","):
        for method in options.methods.split(","):
            for seed in range(options.seeds):
                key = f"{name}/{method}/{seed}"
                if key in known:
                    continue
                found = measure_apart(name, method, seed, options)
                if found is None:
                    break
                known[key] = found
                print(key, json.dumps(found), file=sys.stderr, flush=True)
                if options.results:
                    options.results.write_text(json.dumps(known, indent=1))
    return known


def show(options: argparse.Namespace, known: dict[str, dict[str, float]]) -> list[float]:
    """Print the table; returns NetSMF's speed-ups over gensim."""
    ratios = []
    print(f"{'graph':12} {'method':13} {'wall s':>8} {'cpu s':>8} {'AUC':>7}  speed-up")
    for name in options.graphs.split(","):
        found: dict[str, dict[str, float]] = {}
        for method in options.methods.split(","):
            runs = [known.get(f"{name}/{method}/{seed}") for seed in range(options.seeds)]
            runs = [run for run in runs if run]
            if runs:
                fields = runs[0].keys()
                found[method] = {key: float(np.mean([run[key] for run in runs])) for key in fields}
        for method, run in found.items():
            note = compare(method, run, found, options.clock)
            score = f"{run['auc']:7.4f}" if "auc" in run else " " * 7
            print(f"{name:12} {method:13} {run['wall']:8.2f} {run['cpu']:8.2f} {score}  {note}")
        if {"gensim", "netsmf"} <= found.keys():
            ratios.append(found["gensim"][options.clock] / found["netsmf"][options.clock])
    return ratios


def compare(method: str, run: dict[str, float], found: dict[str, dict[str, float]], by: str) -> str:
    """What a row is to be compared with."""
    notes = []
    if method == "walks" and "pecanpy" in found:
        notes.append(f"{found['pecanpy'][by] / run[by]:.1f}x PecanPy")
    if method == "walks" and "pecanpy-kernel" in found:
        notes.append(f"{found['pecanpy-kernel'][by] / run[by]:.1f}x its kernel")
    if "auc" in run and method != "gensim" and "gensim" in found:
        gensim = found["gensim"][by]
        notes.append(f"{gensim / run[by]:.1f}x gensim")
        if "pecanpy" in found:
            notes.append(f"{(gensim + found['pecanpy'][by]) / run[by]:.1f}x PecanPy + gensim")
    if f"{method}-1" in found:
        notes.append(f"{found[f'{method}-1']['wall'] / run['wall']:.2f}x one thread, wall")
    return ", ".join(notes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", default="cora,ca-astroph,dcsbm-100k")
    parser.add_argument("--methods", default=DEFAULT_METHODS)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--results", type=Path, help="JSON file to keep measurements in")
    parser.add_argument("--pecanpy-python", help="interpreter of an environment with PecanPy")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        name, method, seed = options.measure
        print(json.dumps(measure(name, method, int(seed))))
        return
    print(f"{options.threads} threads, speed-up by {options.clock} time")
    ratios = show(options, collect(options))
    print(f"ratio: {np.exp(np.mean(np.log(ratios))):.2f}" if ratios else "ratio: nan")


if __name__ == "__main__":
    main()
