"""Skip-gram training of one large graph: shards of the starts side by side, then their mean.

A round is a pass. Every shard begins with the same tables, trains on the walks from its
starts, and leaves its own tables; their mean begins the next round. The whole table is in
the memory of every task: that is the limit of this method.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from peg_core.atomic_file import write_array
from peg_core.encoding import ENCODERS
from peg_core.encoding.deepwalk import DeepWalk
from peg_core.encoding.node2vec import Node2Vec
from peg_core.encoding.row_length import place_rows
from peg_core.encoding.walks.skip_gram import Tables
from peg_core.encoding.walks.walk_encoding import describe_training
from peg_core.encoding.walks.walk_training import TrainingState, WalkTraining, start_tables
from peg_core.graph.graph_store import FloatArray
from peg_core.storage.stored_path import remove
from workers.distributed_encoding.encoded_graph import EncodedGraph, keep_graph
from workers.distributed_encoding.encoding_steps import EncodingSteps
from workers.shard import Shard
from workers.task_map import Result, TaskMap
from workers.tasks.encode import EncodeRequest

# Fixed, so that the result does not depend on the number of workers.
SHARDS = 4
# Rows whose mean is taken at a time.
MEAN_ROWS = 2**16
TABLES = ("inputs", "outputs")

SkipGramEncoder = DeepWalk | Node2Vec


class TrainResult(TypedDict):
    """Mean loss of a pass over one shard."""

    loss: float


class PlaceResult(TypedDict):
    """The encoder's report."""

    report: dict[str, Any]


def skip_gram_encoder(request: EncodeRequest) -> SkipGramEncoder:
    encoder = ENCODERS[request.kind](**request.parameters)
    assert isinstance(encoder, SkipGramEncoder)
    return encoder


def encode_large_skip_gram(
    tasks: TaskMap, request: EncodeRequest, *, work: Path, shards: int = SHARDS
) -> None:
    """Encode a graph by shards of its starts; one without edges is left to one task.

    Args:
        tasks: Of the stage; gets the mark of the encoding when everything is done.
        request: Encoding of a graph by training on walks.
        work: Folder for tables, removed at the end.
        shards: Shards of the starts; a part of the result, as the seed is.
    """
    steps = EncodingSteps(tasks, request, work)
    if steps.is_done:
        return
    encoder = skip_gram_encoder(request)
    huge = 2**62  # one range: tables are not cut
    kept = keep_graph(steps, rows=huge, entries=huge)
    if kept.num_edges == 0:
        steps.leave()
        return
    losses = []

    def run(
        name: str, task: Callable[..., Result], arguments: list[dict[str, Any]]
    ) -> list[Result]:
        named = [Shard(f"{name}-{i:02d}", own) for i, own in enumerate(arguments)]
        return steps.map(name, task, named)

    shared = {"request": request, "kept": kept, "work": work}
    run("start", start_task, [shared])
    for number in range(encoder.walks):
        own = [{**shared, "number": number, "shard": s, "shards": shards} for s in range(shards)]
        trained = run(f"train-{number:03d}", train_task, own)
        losses.append(float(np.mean([result["loss"] for result in trained])))
        run(f"mean-{number:03d}", mean_task, [{"work": work, "number": number, "shards": shards}])
        for old in [round_folder(work, number), *work.glob(f"shard-{number:03d}-*")]:
            remove(old)
    (placed,) = run("place", place_task, [{**shared, "losses": losses}])
    report = {**placed["report"], "distributed": True, "shards": shards}
    steps.finish(kept.result(report))


def round_folder(work: Path, number: int) -> Path:
    return work / f"tables-{number:03d}"


def shard_folder(work: Path, number: int, shard: int) -> Path:
    return work / f"shard-{number:03d}-{shard:02d}"


def start_task(request: EncodeRequest, kept: EncodedGraph, work: Path) -> dict[str, Any]:
    """The tables before the first pass."""
    dimensions = skip_gram_encoder(request).dimensions
    tables = start_tables(kept.num_nodes, dimensions, seed=request.seed, one_table=False)
    for name, table in zip(TABLES, tables, strict=True):
        write_array(round_folder(work, 0) / f"{name}.npy", table)
    return {}


def train_task(
    request: EncodeRequest, kept: EncodedGraph, work: Path, number: int, shard: int, shards: int
) -> TrainResult:
    """Train on the walks from one shard of the starts."""
    encoder = skip_gram_encoder(request)
    folder = round_folder(work, number)
    tables = Tables(*(np.load(folder / f"{name}.npy") for name in TABLES))
    graph = kept.graph.open()
    training = WalkTraining(graph, encoder.skip_gram, encoder.walk_rule, seed=request.seed)
    cuts = [kept.num_nodes * i // shards for i in range(shards + 1)]
    loss = training.run_pass(tables, number, slice(*cuts[shard : shard + 2]))
    for name, table in zip(TABLES, tables, strict=True):
        write_array(shard_folder(work, number, shard) / f"{name}.npy", table)
    return {"loss": loss}


def mean_task(work: Path, number: int, shards: int) -> dict[str, Any]:
    """The mean of the shards' tables, a few rows at a time."""
    for name in TABLES:
        parts = [
            np.load(shard_folder(work, number, shard) / f"{name}.npy", mmap_mode="r")
            for shard in range(shards)
        ]
        mean: FloatArray = np.empty(parts[0].shape, dtype=np.float32)
        for first in range(0, len(mean), MEAN_ROWS):
            rows = slice(first, first + MEAN_ROWS)
            mean[rows] = np.mean([part[rows] for part in parts], axis=0)
        write_array(round_folder(work, number + 1) / f"{name}.npy", mean)
    return {}


def place_task(
    request: EncodeRequest, kept: EncodedGraph, work: Path, losses: list[float]
) -> PlaceResult:
    """Write the positions."""
    encoder = skip_gram_encoder(request)
    folder = round_folder(work, encoder.walks)
    inputs = np.load(folder / "inputs.npy", mmap_mode="r")
    graph = kept.graph.open()
    positions = place_rows(inputs, graph, dimensions=encoder.dimensions, rows=encoder.rows)
    request.out.open().write(positions, request.encoding, request.fold)
    state = TrainingState(Tables(inputs, inputs), losses)
    return {"report": describe_training(encoder.skip_gram, state, encoder.rows)}
