"""Training inside Ray Train: the loop of one worker, and the task that starts it."""

from __future__ import annotations

import math
import os
import shutil
import time
import uuid
from dataclasses import dataclass
from typing import Any, TypedDict, cast

from ray import train
from ray.train.torch import TorchTrainer

from peg_core.artifacts.positions import Positions
from peg_core.artifacts.trained_model import PROGRESS_SECONDS, RAY_STORAGE, TrainedModel
from peg_core.atomic_file import written_files
from peg_core.errors import PegError
from peg_core.graph.node_features import NodeFeatures, input_features
from peg_core.layers.peg_conv import PEGConv
from peg_core.models import MODELS
from peg_core.models.link_predictor import LinkPredictor, ModelSpec
from peg_core.object_url import ObjectUrl
from peg_core.splits.split_store import NO_FOLD, SplitStore
from peg_core.storage.stored_path import bring_latest, publish, release_mirrors, remove
from peg_core.training.checkpoint import (
    TrainingState,
    is_damaged,
    read_checkpoint,
    write_checkpoint,
)
from peg_core.training.learning_rate import SCHEDULES, set_learning_rate
from peg_core.training.link_schedule import Share
from peg_core.training.link_trainer import LinkTrainer
from peg_core.training.settings import ModelSettings, Optimisation, Sampling
from peg_core.training.stability import layer_stability
from workers.artifact_ref import ArtifactRef
from workers.process_memory.heap import freed_memory_kept
from workers.ray_nodes.known_nodes import largest_memory
from workers.tasks.train_resources import TrainResources, device_of, exchange, scaling
from workers.tasks.training_setup import build_trainer


class TrainResult(TypedDict):
    """What a training came to.

    Args:
        device: Where the weights were: cpu or cuda.
        lost_checkpoint: Whether an earlier one was damaged, so that it began again.
    """

    seed: int
    device: str
    lost_checkpoint: bool
    epochs: int
    best_epoch: int
    valid: float
    valid_auc: float
    parameters: int
    stability_constant: float | None
    history: list[dict[str, Any]]


@dataclass(frozen=True)
class TrainInputs:
    """What is learned from.

    Args:
        features: What the model reads of the nodes.
        split: Training graph, folds and held-out pairs.
        positions: Encodings of the training graph and of its folds.
        gap: The eigengap at the cut of the first encoding, where it has one.
    """

    features: ArtifactRef[NodeFeatures]
    split: ArtifactRef[SplitStore]
    positions: ArtifactRef[Positions]
    folds: int
    gap: float | None = None


@dataclass(frozen=True)
class TrainRequest:
    """One model to train; its checkpoint lives in its own folder."""

    inputs: TrainInputs
    out: ArtifactRef[TrainedModel]
    seed: int
    model: ModelSettings
    optimisation: Optimisation
    sampling: Sampling
    resources: TrainResources


def train_task(request: TrainRequest) -> TrainResult:
    """Train one model; goes on from its checkpoint where there is one."""
    os.environ.setdefault("RAY_TRAIN_HEALTH_CHECK_INTERVAL_S", "0.5")
    os.environ.setdefault("RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S", "20")
    out = request.out.open()
    out.ray_storage.mkdir(parents=True, exist_ok=True)
    lost = is_damaged(bring_latest(out.checkpoint_file))
    trainer = TorchTrainer(
        train_loop,
        train_loop_config={"request": request},
        scaling_config=scaling(request.resources, largest_memory()),
        torch_config=exchange(request.resources),
        run_config=train.RunConfig(
            # a name used twice would silently restore the old run: our checkpoint is elsewhere
            name=uuid.uuid4().hex,
            failure_config=train.FailureConfig(max_failures=request.resources.retries),
            **_ray_storage(request),
        ),
    )
    try:
        trainer.fit()
    finally:
        shutil.rmtree(out.ray_storage, ignore_errors=True)
        remove(out.folder / RAY_STORAGE)
    shutil.rmtree(out.scratch, ignore_errors=True)
    return cast("TrainResult", {**out.summary(), "lost_checkpoint": lost})


def _ray_storage(request: TrainRequest) -> dict[str, Any]:
    """Where Ray Train keeps its own notes: all its workers and their controller must see it."""
    out = request.out.open()
    if request.out.attempt is None or request.resources.workers == 1:
        return {"storage_path": str(out.ray_storage)}
    url = ObjectUrl.parse(request.out.location)
    return {"storage_path": f"{url.path}/{RAY_STORAGE}", "storage_filesystem": url.filesystem}


def train_loop(config: dict[str, TrainRequest]) -> None:
    """What every Ray Train worker runs; rank 0 writes."""
    with freed_memory_kept():
        _train(config["request"])


def _train(request: TrainRequest) -> None:
    context = train.get_context()
    share = Share(context.get_world_rank(), context.get_world_size())
    trainer, spec = build_trainer(request, share, device_of(request.resources))
    # another machine may have trained last
    checkpoint = bring_latest(request.out.open().checkpoint_file)
    wanted, progress = request.optimisation, _Progress(request.out.open())
    state = read_checkpoint(checkpoint, trainer.average, trainer.optimizer)
    while state.epoch < wanted.epochs and state.epoch - state.best_epoch <= wanted.patience:
        _one_epoch(request, trainer, state, share, progress)
    if share.rank == 0:
        with written_files() as written:
            _finish(request, spec, trainer, state)
        publish(written)
    train.report({"valid": state.best_value})
    if share.world_size > 1:
        shutil.rmtree(request.out.open().scratch, ignore_errors=True)
        release_mirrors()


def _one_epoch(
    request: TrainRequest,
    trainer: LinkTrainer,
    state: TrainingState,
    share: Share,
    progress: _Progress,
) -> None:
    """Run the rest of an epoch, validate, and write a checkpoint where one is due."""
    wanted, resources, out = request.optimisation, request.resources, request.out.open()

    def save() -> None:
        if share.rank == 0:
            write_checkpoint(out.checkpoint_file, state, trainer.average, trainer.optimizer)
            publish([out.checkpoint_file])

    def on_step(done: int, losses: list[float]) -> None:
        if resources.checkpoint_steps and done % resources.checkpoint_steps == 0:
            state.step, state.losses = done, losses
            save()

    share_of_rate = SCHEDULES[wanted.lr_schedule](state.epoch, wanted.epochs)
    set_learning_rate(trainer.optimizer, wanted.lr * share_of_rate)
    loss = trainer.run_epoch(state.epoch, start=state.step, losses=state.losses, on_step=on_step)
    if not math.isfinite(loss):
        raise PegError(
            f"the training loss became {loss} in epoch {state.epoch}; lower `train.lr`, "
            "or check the features for extreme values"
        )
    state.step, state.losses = 0, []
    last = state.epoch + 1 == wanted.epochs
    if last or (state.epoch + 1) % wanted.validate_every == 0:
        _validate(trainer, state, loss)
    state.epoch += 1
    if state.epoch % resources.checkpoint_every == 0:
        save()
    if share.rank == 0 and state.history:
        progress.tell({**state.history[-1], "epoch": state.epoch - 1})


class _Progress:
    """Tells how far a training is; now and then also where the driver is another machine."""

    def __init__(self, out: TrainedModel) -> None:
        self._out = out
        self._next = 0.0

    def tell(self, facts: dict[str, Any]) -> None:
        self._out.write_progress(facts)
        if time.monotonic() >= self._next:
            publish([self._out.progress_file])
            self._next = time.monotonic() + PROGRESS_SECONDS


def _validate(trainer: LinkTrainer, state: TrainingState, loss: float) -> None:
    """All workers come to the same metrics, and so stop at the same epoch."""
    metrics = trainer.validate()
    value = metrics[trainer.metric]
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
    if not request.inputs.gap or not isinstance(layer, PEGConv) or model.table is not None:
        return None
    view = trainer.source.view_of(NO_FOLD)
    return layer_stability(
        layer,
        gap=request.inputs.gap,
        features=input_features(view.features, view.graph, view.positions),
        largest_degree=float(view.graph.weighted_degrees.max()),
    )


def _finish(
    request: TrainRequest, spec: ModelSpec, trainer: LinkTrainer, state: TrainingState
) -> None:
    """Keep the model that was best on the validation pairs."""
    model = MODELS[spec.kind](spec)
    model.load_state_dict(state.best)
    out = request.out.open()
    out.save(model)
    best = next(row for row in state.history if row["epoch"] == state.best_epoch)
    out.write_summary(
        {
            "seed": request.seed,
            "device": trainer.device.type,
            "epochs": state.epoch,
            "best_epoch": state.best_epoch,
            "valid": state.best_value,
            "valid_auc": best["valid_auc"],
            "parameters": sum(p.numel() for p in trainer.model.parameters()),
            "stability_constant": _stability(request, model, trainer),
            "history": state.history,
        },
    )
