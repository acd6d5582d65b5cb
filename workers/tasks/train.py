"""Training inside Ray Train: the loop of one worker, and the task that starts it."""

from __future__ import annotations

import json
import math
import os
import shutil
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed
from ray import train
from ray.train.torch import TorchConfig, TorchTrainer, get_device

from peg_core.atomic_file import write_json
from peg_core.errors import PegError
from peg_core.graph.node_features import input_features
from peg_core.layers.peg_conv import PEGConv
from peg_core.models import MODELS
from peg_core.models.link_predictor import LinkPredictor, ModelSpec
from peg_core.models.model_file import save_model
from peg_core.splits.split_store import NO_FOLD
from peg_core.training.checkpoint import TrainingState, read_checkpoint, write_checkpoint
from peg_core.training.learning_rate import SCHEDULES, set_learning_rate
from peg_core.training.link_schedule import Share
from peg_core.training.link_trainer import LinkTrainer
from peg_core.training.stability import layer_stability
from workers.heap import freed_memory_kept
from workers.task_map import Result
from workers.tasks.training_setup import build_trainer


@dataclass(frozen=True)
class TrainRequest:
    """One model to train: where its inputs are and how it is fitted.

    Args:
        features: What the model reads of the nodes.
        split: Training graph, folds and held-out pairs.
        positions: Encodings of the training graph and of its folds.
        out: Folder of this model; its checkpoint lives there too.
        gap: The eigengap at the cut of the first encoding, where it has one.
        workers: Ray Train workers, or (least, most); 1 runs the loop in the process that asks.
    """

    features: Path
    split: Path
    positions: Path
    out: Path
    num_encodings: int
    folds: int
    seed: int
    kind: str
    preset: str
    hidden: int
    layers: int
    lr: float
    weight_decay: float
    epochs: int
    patience: int
    checkpoint_every: int
    head: str = "preset"
    gate: str = "preset"
    dropout: float | None = None
    head_width: int = 64
    batching: str = "auto"
    batch_size: int = 8192
    fan_outs: Sequence[int] = (15, 10)
    sampler: str = "numba"
    negatives: str = "uniform"
    negatives_per_link: int = 1
    objective: str = "bce"
    metric: str = "auc"
    validate_every: int = 1
    accumulate: int = 1
    average: float = 0.0
    compile: bool = False
    checkpoint_steps: int | None = None
    gap: float | None = None
    workers: int | tuple[int, int] = 1
    cpus_per_worker: int = 1
    gpus_per_worker: float = 0
    retries: int = 3
    lr_schedule: str = "constant"

    @property
    def checkpoint(self) -> Path:
        return self.out / "checkpoint.safetensors"

    @property
    def scratch(self) -> Path:
        """Where the graphs without a fold are kept while a sampled training runs."""
        return self.out / "folds"


def train_task(request: TrainRequest) -> Result:
    """Train one model; goes on from its checkpoint where there is one."""
    os.environ.setdefault("RAY_TRAIN_HEALTH_CHECK_INTERVAL_S", "0.5")
    os.environ.setdefault("RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S", "20")
    request.out.mkdir(parents=True, exist_ok=True)
    # a name used twice would silently restore the old run: our checkpoint is elsewhere
    storage = request.out / "ray_train"
    trainer = TorchTrainer(
        train_loop,
        train_loop_config={"request": request},
        scaling_config=_scaling(request),
        torch_config=TorchConfig(timeout_s=300),
        run_config=train.RunConfig(
            name=uuid.uuid4().hex,
            storage_path=str(storage),
            failure_config=train.FailureConfig(max_failures=request.retries),
        ),
    )
    try:
        trainer.fit()
    finally:
        shutil.rmtree(storage, ignore_errors=True)
    shutil.rmtree(request.scratch, ignore_errors=True)
    finished: Result = json.loads((request.out / "training.json").read_text())
    return finished


def _scaling(request: TrainRequest) -> train.ScalingConfig:
    """Starting Ray Train workers takes longer than a small training: one worker needs none."""
    if request.workers == 1:
        return train.ScalingConfig(num_workers=0, use_gpu=request.gpus_per_worker > 0)
    resources = {"CPU": request.cpus_per_worker, "GPU": request.gpus_per_worker}
    return train.ScalingConfig(
        num_workers=request.workers,
        use_gpu=request.gpus_per_worker > 0,
        resources_per_worker=resources,
    )


def train_loop(config: dict[str, TrainRequest]) -> None:
    """What every Ray Train worker runs; rank 0 writes."""
    with freed_memory_kept():
        _train(config["request"])


def _train(request: TrainRequest) -> None:
    context = train.get_context()
    share = Share(context.get_world_rank(), context.get_world_size())
    trainer, spec = build_trainer(request, share, get_device())
    state = read_checkpoint(request.checkpoint, trainer.average, trainer.optimizer)
    while state.epoch < request.epochs and state.epoch - state.best_epoch <= request.patience:
        _one_epoch(request, trainer, state, share)
    if share.rank == 0:
        _finish(request, spec, trainer, state)
    train.report({"valid": state.best_value})


def _one_epoch(
    request: TrainRequest, trainer: LinkTrainer, state: TrainingState, share: Share
) -> None:
    """Run the rest of an epoch, validate, and write a checkpoint where one is due."""

    def save() -> None:
        if share.rank == 0:
            write_checkpoint(request.checkpoint, state, trainer.average, trainer.optimizer)

    def on_step(done: int, losses: list[float]) -> None:
        if request.checkpoint_steps and done % request.checkpoint_steps == 0:
            state.step, state.losses = done, losses
            save()

    share_of_rate = SCHEDULES[request.lr_schedule](state.epoch, request.epochs)
    set_learning_rate(trainer.optimizer, request.lr * share_of_rate)
    loss = trainer.run_epoch(state.epoch, start=state.step, losses=state.losses, on_step=on_step)
    if not math.isfinite(loss):
        raise PegError(
            f"the training loss became {loss} in epoch {state.epoch}; lower `train.lr`, "
            "or check the features for extreme values"
        )
    state.step, state.losses = 0, []
    last = state.epoch + 1 == request.epochs
    if last or (state.epoch + 1) % request.validate_every == 0:
        _validate(trainer, state, share, loss)
    state.epoch += 1
    if state.epoch % request.checkpoint_every == 0:
        save()
    if share.rank == 0 and state.history:
        write_json(request.out / "progress.json", {**state.history[-1], "epoch": state.epoch - 1})


def _validate(trainer: LinkTrainer, state: TrainingState, share: Share, loss: float) -> None:
    """Rank 0 measures and tells the others, so that all stop at the same epoch."""
    found = [trainer.validate() if share.rank == 0 else {}]
    if share.world_size > 1:
        torch.distributed.broadcast_object_list(found)
    metrics, value = found[0], found[0][trainer.metric]
    row = {"epoch": state.epoch, "loss": loss, "valid_auc": metrics["auc"]}
    if trainer.metric != "auc":
        row[f"valid_{trainer.metric}"] = value
    state.history.append(row)
    if value > state.best_value:
        state.best_value, state.best_epoch = value, state.epoch
        state.best = trainer.average.weights()


def _stability(request: TrainRequest, model: LinkPredictor, trainer: LinkTrainer) -> float | None:
    """The theorem's constant for the first layer, where the encoding has a gap."""
    layer = model.layers[0]
    if not request.gap or not isinstance(layer, PEGConv) or model.table is not None:
        return None
    view = trainer.source.view_of(NO_FOLD)
    return layer_stability(
        layer,
        gap=request.gap,
        features=input_features(view.features, view.graph, view.positions),
        largest_degree=float(view.graph.weighted_degrees.max()),
    )


def _finish(
    request: TrainRequest, spec: ModelSpec, trainer: LinkTrainer, state: TrainingState
) -> None:
    """Keep the model that was best on the validation pairs."""
    model = MODELS[spec.kind](spec)
    model.load_state_dict(state.best)
    save_model(model, request.out)
    best = next(row for row in state.history if row["epoch"] == state.best_epoch)
    write_json(
        request.out / "training.json",
        {
            "seed": request.seed,
            "epochs": state.epoch,
            "best_epoch": state.best_epoch,
            "valid": state.best_value,
            "valid_auc": best["valid_auc"],
            "parameters": sum(p.numel() for p in trainer.model.parameters()),
            "stability_constant": _stability(request, model, trainer),
            "history": state.history,
        },
    )
