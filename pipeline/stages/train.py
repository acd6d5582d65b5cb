"""Models fitted to the training links, one per seed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from peg_core.atomic_file import atomic_path
from peg_core.models import MODELS
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.recipe import Recipe
from pipeline.run.stage import Stage, StageContext, StageResult
from pipeline.stages.features import kind_of
from pipeline.store.manifest import Manifest
from workers.task_map import Result, Shard, TaskProgress, task_map
from workers.tasks.train import TrainRequest, train_task


def settings(config: PipelineConfig) -> dict[str, Any]:
    return {
        "model": {**config.model.model_dump(), "version": MODELS[config.model.kind].version},
        # how often a checkpoint is written does not change the model
        "train": config.train.model_dump(exclude={"checkpoint_every", "checkpoint_steps"}),
    }


def run(context: StageContext) -> StageResult:
    config = context.config.train
    requests = [_request(context, seed) for seed in seeds_of(context.config)]

    def on_progress(_: TaskProgress) -> None:
        context.progress.update(*_progress(requests, context.config.train.epochs))

    results = task_map(
        context.cluster,
        train_task,
        [Shard(f"seed-{request.seed}", {"request": request}) for request in requests],
        markers=context.folder.absolute() / "done",
        on_progress=on_progress,
    )
    _write_epochs(context.folder, results)
    recipe = Recipe.of(context.config, context.inputs, kind=kind_of(context.config))
    for request in requests:
        recipe.write(request.out, context.inputs["features"])
    best = max(results, key=lambda result: result["valid"])
    return StageResult(
        counts={
            "valid_auc": float(np.mean([result["valid_auc"] for result in results])),
            **_metric(config.metric, results),
            "epochs": sum(result["epochs"] for result in results),
            "parameters": best["parameters"],
        },
        details={"best_seed": best["seed"], "models": [_without_history(r) for r in results]},
        peak_memory_bytes=max(result["peak_memory_bytes"] for result in results),
    )


def seeds_of(config: PipelineConfig) -> list[int]:
    """The seeds that models are trained from."""
    return list(range(config.train.seed, config.train.seed + config.train.seeds))


def model_folder(train: Path, seed: int) -> Path:
    """Where the model of a seed is kept."""
    return train / f"seed-{seed}"


def best_model(train: Path) -> Path:
    """The model that was best on the validation pairs."""
    manifest = Manifest.read(train)
    assert manifest is not None  # an input of a stage is always whole
    return model_folder(train, manifest.details["best_seed"])


def _request(context: StageContext, seed: int) -> TrainRequest:
    model, train, cluster = context.config.model, context.config.train, context.config.cluster
    return TrainRequest(
        features=context.inputs["features"].absolute(),
        split=context.inputs["split"].absolute(),
        positions=context.inputs["encode"].absolute(),
        out=model_folder(context.folder.absolute(), seed),
        num_encodings=len(context.config.encodings),
        folds=context.config.split.folds,
        seed=seed,
        kind=model.kind,
        preset=model.preset,
        hidden=model.hidden,
        layers=model.layers,
        head=model.head,
        gate=model.gate,
        dropout=model.dropout,
        head_width=model.head_width,
        batching=train.batching,
        batch_size=train.batch_size,
        fan_outs=train.fan_outs or [15, *[10] * (model.layers - 1)],
        sampler=train.sampler,
        negatives=train.negatives,
        negatives_per_link=train.negatives_per_link,
        objective=train.objective,
        metric=train.metric,
        validate_every=train.validate_every,
        accumulate=train.accumulate,
        average=train.average,
        compile=train.compile,
        checkpoint_steps=train.checkpoint_steps,
        lr=train.lr,
        lr_schedule=train.lr_schedule,
        weight_decay=train.weight_decay,
        epochs=train.epochs,
        patience=train.patience,
        checkpoint_every=train.checkpoint_every,
        gap=_gap(context.inputs["encode"]),
        workers=cluster.train_workers,
        cpus_per_worker=cluster.cpus_per_worker,
        gpus_per_worker=cluster.gpus_per_worker,
        retries=cluster.retries,
    )


def _gap(encode: Path) -> float | None:
    """The eigengap of the first encoding of the whole training graph, where it has one."""
    manifest = Manifest.read(encode)
    assert manifest is not None  # an input of a stage is always whole
    gap: float | None = manifest.details["encoding-0-all"]["report"].get("gap")
    return gap


def _progress(requests: list[TrainRequest], epochs: int) -> tuple[float, float, str]:
    """What the loops wrote last: (epochs done, epochs at most, a note)."""
    latest = []
    for request in requests:
        file = request.out / "progress.json"
        if file.exists():
            latest.append(json.loads(file.read_text()))
    done = sum(row["epoch"] + 1 for row in latest)
    total = epochs * len(requests)
    if not latest:
        return 0, total, "starting"
    last = latest[-1]
    epoch = last.pop("epoch")
    values = (f"{name.replace('_', ' ')} {value:.4f}" for name, value in last.items())
    return done, total, f"epoch {epoch} {' '.join(values)}"


def _metric(name: str, results: list[Result]) -> dict[str, float]:
    """What validation went by, where that is not the AUC."""
    if name == "auc":
        return {}
    return {f"valid_{name}": float(np.mean([result["valid"] for result in results]))}


def _write_epochs(folder: Path, results: list[Result]) -> None:
    rows = [{"seed": r["seed"], **row} for r in results for row in r["history"]]
    with atomic_path(folder / "epochs.parquet") as temporary:
        pl.DataFrame(rows).write_parquet(temporary)


def _without_history(result: Result) -> Result:
    return {key: value for key, value in result.items() if key != "history"}


STAGE = Stage("train", 1, ("features", "split", "encode"), settings, run)
