"""Training inside Ray Train: the loop of one worker, and the task that starts it."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from typing import TYPE_CHECKING, Any, cast

from ray import train
from ray.train.torch import TorchTrainer

from peg_core.artifacts.trained_model import PROGRESS_SECONDS, RAY_STORAGE, TrainedModel
from peg_core.atomic_file import written_files
from peg_core.graph.node_features import input_features
from peg_core.layers.peg_conv import PEGConv
from peg_core.models import MODELS
from peg_core.models.link_predictor import LinkPredictor
from peg_core.models.model_spec import ModelSpec
from peg_core.object_url import ObjectUrl
from peg_core.splits.split_store import NO_FOLD
from peg_core.storage.stored_path import bring_latest, publish, release_mirrors, remove
from peg_core.training.checkpoint import (
    TrainingState,
    is_damaged,
    read_checkpoint,
    write_checkpoint,
)
from peg_core.training.course import Course, Moved, follow
from peg_core.training.link_schedule import Share
from peg_core.training.link_trainer import LinkTrainer
from peg_core.training.stability import layer_stability
from workers.process_memory.heap import freed_memory_kept
from workers.ray_nodes.known_nodes import largest_memory
from workers.tasks.training.ray_train import device_of, exchange, scaling
from workers.tasks.training.training_setup import build_trainer

if TYPE_CHECKING:
    from workers.tasks.train import TrainRequest, TrainResult


def fit(request: TrainRequest) -> TrainResult:
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
    course = Course(trainer.source.schedule, request.optimisation)
    state = read_checkpoint(checkpoint, trainer.average, trainer.optimizer)
    progress = _Progress(request.out.open(), course, state)
    for moved in follow(course, trainer, state):
        if share.rank == 0:
            if _is_kept(moved, state, request):
                _save(request, trainer, state)
            progress.tell(state, now=moved.validated)
    if share.rank == 0:
        with written_files() as written:
            _finish(request, spec, trainer, state, course)
        publish(written)
    train.report({"valid": state.best_value})
    if share.world_size > 1:
        shutil.rmtree(request.out.open().scratch, ignore_errors=True)
        release_mirrors()


def _is_kept(moved: Moved, state: TrainingState, request: TrainRequest) -> bool:
    """Whether a checkpoint is due."""
    resources = request.resources
    if moved.ended_epoch and state.epoch % resources.checkpoint_every == 0:
        return True
    if moved.validated and not moved.ended_epoch:
        return True
    steps = resources.checkpoint_steps
    return steps is not None and moved.step % steps == 0


def _save(request: TrainRequest, trainer: LinkTrainer, state: TrainingState) -> None:
    file = request.out.open().checkpoint_file
    write_checkpoint(file, state, trainer.average, trainer.optimizer)
    publish([file])


class _Progress:
    """Tells how far a training is; now and then also where the driver is another machine."""

    def __init__(self, out: TrainedModel, course: Course, state: TrainingState) -> None:
        self._out, self._course = out, course
        self._began, self._first = time.monotonic(), self._seen(state)
        self._next_told = self._next_published = 0.0

    def tell(self, state: TrainingState, *, now: bool) -> None:
        """How many links supervised, of how many at most, and what the last validation found.

        Args:
            now: However short ago the last time was.
        """
        time_now = time.monotonic()
        if not now and time_now < self._next_told:
            return
        self._next_told = time_now + PROGRESS_SECONDS
        seen, most = self._seen(state), self._course.most_links
        pace = (time_now - self._began) / max(1, seen - self._first)
        facts: dict[str, Any] = {
            "links": seen,
            "most_links": most,
            "seconds_left": round(pace * max(0, most - seen), 1),
            "last": state.history[-1] if state.history else {},
        }
        self._out.write_progress(facts)
        if time_now >= self._next_published:
            publish([self._out.progress_file])
            self._next_published = time_now + PROGRESS_SECONDS

    def _seen(self, state: TrainingState) -> int:
        return self._course.links_seen(state.epoch, state.step)


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
    request: TrainRequest,
    spec: ModelSpec,
    trainer: LinkTrainer,
    state: TrainingState,
    course: Course,
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
            "epochs": state.epoch + (state.step > 0),
            "links_seen": course.links_seen(state.epoch, state.step),
            "best_epoch": state.best_epoch,
            "valid": state.best_value,
            "valid_auc": best.get("valid_auc"),
            "parameters": sum(p.numel() for p in trainer.model.parameters()),
            "stability_constant": _stability(request, model, trainer),
            "history": state.history,
        },
    )
