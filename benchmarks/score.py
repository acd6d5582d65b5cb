"""Score candidate pairs: the whole stage beside a plain torch loop and beside pure memory.

    python benchmarks/score.py                                  # a few minutes
    python benchmarks/score.py --pairs 100000000                # as in docs/performance.md
    python benchmarks/score.py --billion                        # memory of all processes, too

Graph: R-MAT, heavy-tailed; embeddings and positions of 128 float32 each; uniformly random
pairs. The linear head reads two inner products, the structural one also the neighbourhoods, that
with branches one inner product and the neighbourhoods.
Peers: (a) index_select of both sides, multiply, sum, head, pyarrow write; (b) a kernel that
only gathers the same rows and sums them, in memory: what the machine's memory gives. Rates
are pairs per second of wall time, every measurement in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numba
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from peg_core.artifacts import EmbeddedGraph, Embeddings, Positions, TrainedModel
from peg_core.generators.random_graphs import RecursiveMatrix
from peg_core.generators.synthetic_tables import sample_candidates
from peg_core.graph.components import connected_components
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.node_ids import NodeIds
from peg_core.graph.relations import NodeKind, Relation, Relations
from peg_core.inference.pair_scoring import PairScorer
from peg_core.metrics.stack import Stack
from peg_core.models.model_spec import ModelSpec
from peg_core.models.peg import PEG
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.config.result_sections import ScoreConfig
from pipeline.run.stage import StageContext
from pipeline.run.stage_inputs import StageInputs
from pipeline.stages import score as score_stage
from workers.artifact_ref import ArtifactFolder, ArtifactRef
from workers.cluster import Cluster
from workers.cluster_settings import ClusterSettings
from workers.shard import Shard
from workers.task_map import TaskMap

DIMENSIONS = 128
HEADS: dict[str, dict[str, Any]] = {
    "linear": {"preset": "faithful"},
    "structural": {"preset": "best"},
    "branches": {"preset": "best", "head": "branches"},
}
# The structural head on the same edges, each with a direction.
DIRECTED = "directed"
FILE_ROWS = 25_000_000
GROUP_ROWS = 1_000_000
IN_MEMORY_PAIRS = 4_000_000


class Silent:
    def update(self, done: float, total: float, note: str = "") -> None:
        """Nobody looks."""


def prepare(folder: Path, nodes: int) -> None:
    """A graph, embeddings, positions and untrained models: speed does not depend on weights."""
    generator = RecursiveMatrix(nodes, 16 * nodes)
    chunks = list(generator.chunks(seed=0))
    source = np.concatenate([chunk.source for chunk in chunks])
    target = np.concatenate([chunk.target for chunk in chunks])
    graph = GraphStore.from_edges(source, target, num_nodes=nodes)
    graph.save(folder)
    NodeIds(pa.array(np.arange(nodes))).save(folder)
    rng = np.random.default_rng(0)
    Positions(folder).write(rng.standard_normal((nodes, DIMENSIONS), dtype=np.float32), 0)
    embeddings = Embeddings(folder)
    np.save(embeddings.layer_file(1), rng.standard_normal((nodes, DIMENSIONS), dtype=np.float32))
    embeddings.write_components(connected_components(graph)[1])
    for head, settings in HEADS.items():
        torch.manual_seed(0)
        spec = ModelSpec("peg", in_channels=2, num_encodings=1, hidden=DIMENSIONS, **settings)
        TrainedModel(folder / head).save(PEG(spec))
    spec = ModelSpec("peg", "best", 2, 1, DIMENSIONS, relation_columns=2, directed=True)
    TrainedModel(folder / DIRECTED).save(PEG(spec))
    point_edges(graph).save(folder / f"{DIRECTED}-graph")


def point_edges(graph: GraphStore) -> GraphStore:
    """The same edges, each with a direction that chance gave it."""
    rows = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    low, high = np.minimum(rows, graph.indices), np.maximum(rows, graph.indices)
    upwards = (low * 31 + high * 17) % 7 < 4
    codes = np.where((rows == low) == upwards, 1, 2).astype(np.uint16)
    kinds = (NodeKind("node", 0, graph.num_nodes),)
    relations = Relations(kinds, (Relation("links", "node", "node", directed=True),))
    return GraphStore(graph.indptr, graph.indices, None, codes, relations=relations)


def write_candidates(folder: Path, nodes: int, pairs: int) -> None:
    """Uniformly random pairs without repetition, in files of 25 million rows."""
    folder.mkdir()
    for start in range(0, pairs, FILE_ROWS):
        stop = min(start + FILE_ROWS, pairs)
        schema = pa.schema({"src": pa.int32(), "dst": pa.int32()})
        with pq.ParquetWriter(
            folder / f"candidates-{start // FILE_ROWS:03}.parquet",
            schema,
            compression="zstd",
            use_dictionary=False,
            column_encoding=dict.fromkeys(schema.names, "DELTA_BINARY_PACKED"),
        ) as writer:
            for first in range(start, stop, GROUP_ROWS):
                rows = min(GROUP_ROWS, stop - first)
                drawn = sample_candidates(nodes=nodes, rows=rows, seed=1, first_row=first)
                ends = [end.astype(np.int32) for end in (drawn.source, drawn.target)]
                writer.write_table(pa.table(ends, schema=schema))


def random_pairs(nodes: int, pairs: int) -> tuple[np.ndarray, np.ndarray]:
    source, target = np.random.default_rng(2).integers(0, nodes, size=(2, pairs))
    return source, target


@numba.njit(parallel=True, fastmath={"contract", "reassoc"})
def gather_and_sum(x: Any, z: Any, source: Any, target: Any, out: Any) -> None:
    for i in numba.prange(len(source)):
        first, second = source[i], target[i]
        total = np.float32(0)
        for k in range(x.shape[1]):
            total += x[first, k] + x[second, k]
        for k in range(z.shape[1]):
            total += z[first, k] + z[second, k]
        out[i] = total


def open_scorer(folder: Path, head: str) -> PairScorer:
    graph = folder / f"{DIRECTED}-graph" if head == DIRECTED else folder
    embedded = EmbeddedGraph.of(GraphStore.open(graph), Positions(folder), Embeddings(folder))
    return embedded.scorer(TrainedModel(folder / head))


def best_rate(pairs: int, work: Any) -> float:
    """Of three times, the first calls compiled and filled the page cache."""
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return pairs / min(seconds)


def measure_memory(folder: Path, head: str) -> float:
    x = np.load(folder / "layer-1.npy")
    z = np.load(Positions(folder).file(0))
    del head
    source, target = random_pairs(len(x), IN_MEMORY_PAIRS)
    out = np.empty(len(source), dtype=np.float32)
    gather_and_sum(x, z, source[:1_000], target[:1_000], out)
    return best_rate(len(source), lambda: gather_and_sum(x, z, source, target, out))


def measure_kernel(folder: Path, head: str) -> float:
    scorer = open_scorer(folder, head)
    source, target = random_pairs(scorer.graph.num_nodes, IN_MEMORY_PAIRS)
    scorer.logits(source, target)
    return best_rate(len(source), lambda: scorer.logits(source, target))


def measure_stacked(folder: Path, head: str) -> float:
    """The same head, with common neighbours in the sum."""
    scorer = replace(open_scorer(folder, head), stack=Stack(1.2, (-1.5, -1.5, 10.0)))
    source, target = random_pairs(scorer.graph.num_nodes, IN_MEMORY_PAIRS)
    scorer.logits(source, target)
    return best_rate(len(source), lambda: scorer.logits(source, target))


def measure_hubs(folder: Path, head: str) -> float:
    """Ends drawn by degree, so that most pairs hold a hub."""
    scorer = open_scorer(folder, head)
    rng = np.random.default_rng(3)
    indices = scorer.graph.indices
    ends = indices[rng.integers(0, len(indices), size=(2, 100_000))].astype(np.int64)
    scorer.logits(*ends[:, :1_000])
    return best_rate(ends.shape[1], lambda: scorer.logits(*ends))


@torch.no_grad()
def measure_torch(folder: Path, head: str) -> float:
    """Parquet in, Parquet out, by the shortest loop in torch; on the first file's start."""
    scorer = open_scorer(folder, head)
    x, z = (torch.from_numpy(np.array(a)) for a in (scorer.embeddings, scorer.positions[0]))
    linear = scorer.model.head.linear
    file = pq.ParquetFile(sorted((folder / "candidates").glob("*.parquet"))[0])
    start, rows = time.perf_counter(), 0
    writer = None
    for batch in file.iter_batches(batch_size=65_536):
        source, target = (torch.from_numpy(batch[i].to_numpy().astype(np.int64)) for i in (0, 1))
        inner = (x.index_select(0, source) * x.index_select(0, target)).sum(-1)
        squared = (z.index_select(0, source) - z.index_select(0, target)).square().sum(-1)
        score = linear(torch.stack([inner, squared], -1)).squeeze(-1).sigmoid()
        table = pa.table({"src": batch[0], "dst": batch[1], "score": score.numpy()})
        writer = writer or pq.ParquetWriter(folder / "torch.parquet", table.schema,
                                            compression="zstd")  # fmt: skip
        writer.write_table(table)
        rows += len(batch)
        if rows >= IN_MEMORY_PAIRS:
            break
    if writer is not None:
        writer.close()
    return rows / (time.perf_counter() - start)


def ready(folder: str, head: str) -> dict[str, Any]:
    """Import, open and compile in a worker before the clock starts."""
    scorer = open_scorer(Path(folder), head)
    scorer.logits(np.arange(10), np.arange(10))
    time.sleep(1)
    return {}


def measure_stage(folder: Path, head: str) -> float:
    cluster = Cluster(ClusterSettings(workers=2))
    out = folder / f"scores-{head}"
    arguments = {"folder": str(folder), "head": head}
    shards = [Shard(str(i), arguments) for i in range(4)]
    TaskMap(cluster, out / "ready").map(ready, shards)
    config = PipelineConfig.model_construct(
        score=ScoreConfig(candidates=str(folder / "candidates"))
    )
    given = ArtifactRef.of_folder(folder, ArtifactFolder)
    model = ArtifactRef.of_folder(folder / head, TrainedModel)
    inputs = StageInputs(dict.fromkeys(("ingest", "encode_all", "embed_all"), given), model)
    tasks = TaskMap(cluster, out / "done")
    made = ArtifactRef.of_folder(out, ArtifactFolder)
    start = time.perf_counter()
    result = score_stage.run(StageContext(config, made, inputs, tasks, Silent(), None))
    seconds = time.perf_counter() - start
    cluster.close()
    shutil.rmtree(out)
    return float(result.counts["pairs"] / seconds)


MEASURES = {
    "memory": measure_memory,
    "kernel": measure_kernel,
    "stacked": measure_stacked,
    "hubs": measure_hubs,
    "torch": measure_torch,
    "stage": measure_stage,
}


def measure_apart(folder: Path, what: str, head: str) -> dict[str, float]:
    """One measurement in its own process tree, with its peak memory."""
    process = subprocess.Popen(
        [sys.executable, __file__, "--measure", what, head, "--folder", str(folder)],
        stdout=subprocess.PIPE,
        text=True,
    )
    peak = {"rss": 0, "pss": 0}

    def watch() -> None:
        handle = psutil.Process(process.pid)
        while process.poll() is None:
            for name, value in memory_of(handle).items():
                peak[name] = max(peak[name], value)
            time.sleep(1)

    thread = threading.Thread(target=watch)
    thread.start()
    output, _ = process.communicate()
    thread.join()
    if process.returncode:
        raise SystemExit(f"{what} of the {head} head failed with exit code {process.returncode}")
    return {"rate": json.loads(output.splitlines()[-1]), **peak}


def memory_of(process: psutil.Process) -> dict[str, int]:
    """Of a process and all its children: resident, and proportional (shared pages once)."""
    total = {"rss": 0, "pss": 0}
    try:
        for one in [process, *process.children(recursive=True)]:
            facts = one.memory_full_info()
            total["rss"] += facts.rss
            total["pss"] += facts.pss
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        pass
    return total


def show(label: str, found: dict[str, float], note: str = "") -> None:
    print(f"{label:38} {found['rate'] / 1e6:8.2f} Mpairs/s  {found['pss'] / 1e9:5.2f} GB  {note}",
          flush=True)  # fmt: skip


def compare(folder: Path) -> None:
    memory = measure_apart(folder, "memory", "linear")
    show("gather and sum, in memory", memory)
    loop = measure_apart(folder, "torch", "linear")
    show("torch loop, linear head", loop)
    for head in HEADS:
        kernel = measure_apart(folder, "kernel", head)
        show(f"kernel, {head} head", kernel, f"{kernel['rate'] / memory['rate']:.2f} of memory")
        stacked = measure_apart(folder, "stacked", head)
        show(f"kernel, {head} head, stacked", stacked, f"{stacked['rate'] / kernel['rate']:.2f}x")
        stage = measure_apart(folder, "stage", head)
        show(f"stage, {head} head", stage, f"{stage['rate'] / memory['rate']:.2f} of memory")
        if head == "linear":
            ratio = stage["rate"] / loop["rate"]
    show("kernel, structural head, hub pairs", measure_apart(folder, "hubs", "structural"))
    directed = measure_apart(folder, "kernel", DIRECTED)
    show("kernel, directed structural head", directed, f"{directed['rate'] / kernel['rate']:.2f} "
         "of the structural one")  # fmt: skip
    print(f"ratio: {ratio:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=10_000_000)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--billion", action="store_true", help="a billion pairs, stage alone")
    parser.add_argument("--head", choices=HEADS, default="linear", help="of --billion")
    parser.add_argument("--folder", type=Path, help="where to work; needs room for the scores")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        what, head = options.measure
        print(json.dumps(MEASURES[what](options.folder, head)))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        prepare(folder, options.nodes)
        pairs = 1_000_000_000 if options.billion else options.pairs
        write_candidates(folder / "candidates", options.nodes, pairs)
        print(f"{options.nodes:,} nodes, {pairs:,} pairs, d = p = {DIMENSIONS}", flush=True)
        if not options.billion:
            compare(folder)
            return
        found = measure_apart(folder, "stage", options.head)
        show(f"stage, {options.head} head", found)
        print(f"{pairs / found['rate']:,.0f} s, peak of all processes: {found['rss'] / 1e9:.2f} GB "
              f"resident, {found['pss'] / 1e9:.2f} GB proportional")  # fmt: skip


if __name__ == "__main__":
    main()
