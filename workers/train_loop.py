"""Training inside Ray Train: the loop of one worker, and the task that starts it."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from ray import train
from ray.train.torch import TorchConfig, TorchTrainer, get_device, prepare_model

from peg_core.atomic_file import write_json
from peg_core.errors import PegError
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.node_features import NodeFeatures
from peg_core.layers.peg_conv import PEGConv
from peg_core.models import MODELS
from peg_core.models.link_predictor import LinkPredictor, ModelSpec
from peg_core.models.model_file import save_model
from peg_core.random_streams import stream_seed
from peg_core.splits.leak_check import require_no_leaks
from peg_core.splits.split_store import NO_FOLD, SplitStore
from peg_core.training.checkpoint import TrainingState, read_checkpoint, write_checkpoint
from peg_core.training.graph_view import GraphView
from peg_core.training.link_trainer import LinkTrainer, PairLogits, Share
from peg_core.training.stability import layer_stability
from workers.encode_tasks import hidden_links, load_positions
from workers.task_map import Result


@dataclass(frozen=True)
class TrainRequest:
    """One model to train: where its inputs are and how it is fitted.

    Args:
        features: What the model reads of the nodes.
        split: Training graph, folds and held-out pairs.
        positions: Encodings of the training graph and of its folds.
        out: Folder of this model; its checkpoint lives there too.
        gap: The eigengap at the cut of the first encoding, where it has one.
        workers: Ray Train workers; 1 runs the loop in the process that asks.
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
    gap: float | None = None
    workers: int = 1
    cpus_per_worker: int = 1
    gpus_per_worker: float = 0
    retries: int = 3


def train_task(request: TrainRequest) -> Result:
    """Train one model; goes on from its checkpoint where there is one."""
    os.environ.setdefault("RAY_TRAIN_HEALTH_CHECK_INTERVAL_S", "0.5")
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


def train_loop(config: dict[str, Any]) -> None:
    """What every Ray Train worker runs; rank 0 writes."""
    request: TrainRequest = config["request"]
    context = train.get_context()
    share = Share(context.get_world_rank(), context.get_world_size())
    device = get_device()
    trainer, spec = _build(request, share, device)
    checkpoint = request.out / "checkpoint.safetensors"
    state = read_checkpoint(checkpoint, trainer.model, trainer.optimizer)
    while state.epoch < request.epochs and state.epoch - state.best_epoch <= request.patience:
        _one_epoch(trainer, state)
        if share.rank == 0:
            write_json(request.out / "progress.json", state.history[-1])
            if state.epoch % request.checkpoint_every == 0:
                write_checkpoint(checkpoint, state, trainer.model, trainer.optimizer)
    if share.rank == 0:
        _finish(request, spec, trainer, state)
    train.report({"valid_auc": state.best_auc})


def _build(
    request: TrainRequest, share: Share, device: torch.device
) -> tuple[LinkTrainer, ModelSpec]:
    split = SplitStore(request.split)
    features = NodeFeatures.open(request.features)

    def positions_of(graph: GraphStore, fold: int) -> list[npt.NDArray[np.float32]]:
        return load_positions(
            request.positions, request.num_encodings, num_nodes=graph.num_nodes, fold=fold
        )

    @cache
    def view_of(fold: int) -> GraphView:
        graph = split.graph_without(fold)
        require_no_leaks(graph, hidden_links(split, fold), place="the messages of training")
        positions = positions_of(graph, fold)
        return GraphView.of(graph, positions, features, squared=model.squared_distances)

    spec = ModelSpec(
        kind=request.kind,
        preset=request.preset,
        in_channels=features.width(positions_of(split.train_graph(), NO_FOLD)),
        num_encodings=request.num_encodings,
        hidden=request.hidden,
        layers=request.layers,
    )
    torch.manual_seed(stream_seed(seed=request.seed, purpose="initial weights"))
    model = MODELS[request.kind](spec)
    network = prepare_model(PairLogits(model))
    optimizer = torch.optim.Adam(
        network.parameters(), lr=request.lr, weight_decay=request.weight_decay
    )
    trainer = LinkTrainer(
        network, optimizer, view_of, split, folds=request.folds, seed=request.seed,
        device=device, share=share,
    )  # fmt: skip
    return trainer, spec


def _one_epoch(trainer: LinkTrainer, state: TrainingState) -> None:
    loss = trainer.run_epoch(state.epoch)
    auc = trainer.validation_auc()
    if not torch.isfinite(torch.tensor(loss)):
        raise PegError(
            f"the training loss became {loss} in epoch {state.epoch}; lower `train.lr`, "
            "or check the features for extreme values"
        )
    state.history.append({"epoch": state.epoch, "loss": loss, "valid_auc": auc})
    if auc > state.best_auc:
        state.best_auc, state.best_epoch = auc, state.epoch
        state.best = {
            name: value.detach().cpu().clone() for name, value in trainer.model.state_dict().items()
        }
    state.epoch += 1


def _stability(request: TrainRequest, model: LinkPredictor, trainer: LinkTrainer) -> float | None:
    """The theorem's constant for the first layer, where the encoding has a gap."""
    layer = model.layers[0]
    if not request.gap or not isinstance(layer, PEGConv):
        return None
    view = trainer.view_of(NO_FOLD)
    return layer_stability(
        layer,
        gap=request.gap,
        features=view.features.numpy(),
        largest_degree=float(view.graph.weighted_degrees.max()),
    )


def _finish(
    request: TrainRequest, spec: ModelSpec, trainer: LinkTrainer, state: TrainingState
) -> None:
    """Keep the model that was best on the validation pairs."""
    model = MODELS[spec.kind](spec)
    model.load_state_dict(state.best)
    save_model(model, request.out)
    write_json(
        request.out / "training.json",
        {
            "seed": request.seed,
            "epochs": state.epoch,
            "best_epoch": state.best_epoch,
            "valid_auc": state.best_auc,
            "parameters": sum(p.numel() for p in trainer.model.parameters()),
            "stability_constant": _stability(request, model, trainer),
            "history": state.history,
        },
    )
