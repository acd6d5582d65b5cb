"""Models fitted to the training links, one per seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from peg_core.artifacts.positions import Positions
from peg_core.artifacts.recipe import Recipe
from peg_core.artifacts.trained_model import TrainedModel, Training, seed_part
from peg_core.atomic_file import atomic_path
from peg_core.graph.graph_outline import GraphOutline
from peg_core.models import model_version
from peg_core.splits.split_store import TRAIN_GRAPH
from peg_core.training.settings import MOST_FULL_EDGES
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.report.formats import format_seconds
from pipeline.run.stage import Stage, StageContext, StageResult
from pipeline.stages.features import kind_of
from workers.shard import Shard
from workers.tasks.train import (
    TrainInputs,
    TrainRequest,
    TrainResult,
    train_task,
)
from workers.tasks.training.train_resources import TrainResources, task_resources


def settings(config: PipelineConfig) -> dict[str, Any]:
    return {
        "model": {**config.model.dependencies(), "version": model_version(config.model.kind)},
        # neither how often a checkpoint is written nor what follows changes the model
        "train": config.train.dependencies(
            exclude={"checkpoint_every", "checkpoint_steps", "refit"}
        ),
    }


def run(context: StageContext) -> StageResult:
    requests = [training_request(context, seed) for seed in seeds_of(context.config)]
    models = [request.out.open() for request in requests]
    results = context.map(
        train_task,
        [Shard(seed_part(request.seed), {"request": request}) for request in requests],
        on_progress=lambda _: context.progress.update(*_progress(models)),
        **task_resources(_resources(context)),
    )
    _write_epochs(context.out.at(Training).open(), results)
    recipe = recipe_of(context)
    for model in models:
        model.save_recipe(recipe, context.inputs.features.folder)
    best = max(results, key=lambda result: result["valid"])
    return StageResult(
        counts={
            "valid_auc": float(np.mean([result["valid_auc"] for result in results])),
            **_metric(context.config.train.metric, results),
            "epochs": sum(result["epochs"] for result in results),
            "links_seen": sum(result["links_seen"] for result in results),
            "parameters": best["parameters"],
        },
        details={"best_seed": best["seed"], "models": [_without_history(r) for r in results]},
        warnings=_lost_checkpoints(models, results) + _missing_gpus(context.config, results),
    )


def _missing_gpus(config: PipelineConfig, results: Sequence[TrainResult]) -> list[str]:
    """What was trained on CPUs although GPUs were reserved for it."""
    gpus = config.cluster.gpus_per_worker
    if not gpus or all(result.get("device") != "cpu" for result in results):
        return []
    return [
        f"trained on CPUs although `cluster.gpus_per_worker` is {gpus:g}: torch sees no GPU there; "
        "install a CUDA build of torch on the machines that have one"
    ]


def _lost_checkpoints(models: Sequence[TrainedModel], results: Sequence[TrainResult]) -> list[str]:
    """What an interrupted training left and what is not what it wrote."""
    return [
        f"{model.checkpoint_file} is damaged: this training began again from its first epoch"
        for model, result in zip(models, results, strict=True)
        if result.get("lost_checkpoint")
    ]


def seeds_of(config: PipelineConfig) -> list[int]:
    """The seeds that models are trained from."""
    return list(range(config.train.seed, config.train.seed + config.train.seeds))


def training_request(context: StageContext, seed: int) -> TrainRequest:
    """One model of this configuration, from what the stage reads."""
    config, inputs = context.config, context.inputs
    return TrainRequest(
        inputs=TrainInputs(
            features=inputs.features,
            split=inputs.split,
            positions=inputs.positions,
            folds=config.split.num_folds,
            gap=_gap(context),
        ),
        out=context.out.at(TrainedModel, seed_part(seed)),
        seed=seed,
        model=config.model.settings(),
        optimisation=config.train.optimisation(),
        sampling=config.train.sampling(),
        resources=_resources(context),
    )


def _resources(context: StageContext) -> TrainResources:
    config = context.config
    return TrainResources(
        workers=config.cluster.train_workers,
        cpus_per_worker=_cpus(context),
        gpus_per_worker=config.cluster.gpus_per_worker,
        retries=config.cluster.retries,
        checkpoint_every=config.train.checkpoint_every,
        checkpoint_steps=config.train.checkpoint_steps,
        memory_bytes=config.cluster.task_memory,
    )


def _cpus(context: StageContext) -> int:
    """Of each worker: one that trains alone, on samples of a large graph, has those of all tasks.

    More threads change the last bits of a model, so a smaller graph keeps to those of one task.
    """
    config, cluster = context.config, context.config.cluster
    edges = context.inputs.split.at(GraphOutline, TRAIN_GRAPH).open().num_edges
    alone = config.train.seeds == 1 and cluster.train_workers == 1
    if alone and edges > MOST_FULL_EDGES and config.train.batching != "full":
        return cluster.workers * cluster.cpus_per_worker
    return cluster.cpus_per_worker


def _gap(context: StageContext) -> float | None:
    """The eigengap of the first encoding of the whole training graph, where it has one."""
    details = context.inputs.manifest("encode").details
    gap: float | None = details[Positions.name(0)]["report"].get("gap")
    return gap


def recipe_of(context: StageContext) -> Recipe:
    """What the model needs of any graph."""
    config = context.config
    return Recipe(
        graph=config.graph.model_dump(),
        features={**config.features.model_dump(), "kind": kind_of(config)},
        encodings=[item.model_dump() for item in config.encodings],
        dimensions=context.inputs.positions.open().widths(),
        feature_width=context.inputs.manifest("features").counts.get("input_width"),
    )


def _progress(models: Sequence[TrainedModel]) -> tuple[float, float, str]:
    """What the loops wrote last: (links seen, links at most, a note)."""
    found = [model.progress() for model in models]
    latest = [row for row in found if row is not None]
    if not latest:
        return 0, 1, "starting"
    seen, most = (sum(row[key] for row in latest) for key in ("links", "most_links"))
    waiting = len(models) - len(latest)
    left = format_seconds(max(row["seconds_left"] for row in latest))
    last = latest[-1]["last"]
    values = "".join(f", {name.replace('_', ' ')} {value:.4g}" for name, value in last.items())
    total = most + waiting * latest[-1]["most_links"]
    return seen, total, f"{seen:,} of {total:,} links, at most {left} left{values}"


def _metric(name: str, results: list[TrainResult]) -> dict[str, float]:
    """What validation went by, where that is not the AUC."""
    if name == "auc":
        return {}
    return {f"valid_{name}": float(np.mean([result["valid"] for result in results]))}


def _write_epochs(training: Training, results: list[TrainResult]) -> None:
    rows = [{"seed": r["seed"], **row} for r in results for row in r["history"]]
    with atomic_path(training.epochs_file) as temporary:
        pl.DataFrame(rows).write_parquet(temporary)


def _without_history(result: TrainResult) -> dict[str, Any]:
    left_out = ("history", "lost_checkpoint")
    return {key: value for key, value in result.items() if key not in left_out}


STAGE = Stage("train", 1, ("features", "split", "encode"), settings, run)
