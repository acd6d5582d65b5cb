"""Training as a Ray task: what it is told, and what it came to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

from peg_core.artifacts.positions import Positions
from peg_core.artifacts.trained_model import TrainedModel
from peg_core.graph.node_features import NodeFeatures
from peg_core.splits.split_store import SplitStore
from peg_core.training.settings import ModelSettings, Optimisation, Sampling
from workers.artifact_ref import ArtifactRef
from workers.tasks.training.train_resources import TrainResources


class TrainResult(TypedDict):
    """What a training came to.

    Args:
        device: Where the weights were: cpu or cuda.
        epochs: That were begun.
        links_seen: How often a link supervised.
        best_epoch: Epochs before the weights that were kept; with a part of one where validations
            do not wait for its end.
        lost_checkpoint: Whether an earlier one was damaged, so that it began again.
    """

    seed: int
    device: str
    lost_checkpoint: bool
    epochs: int
    links_seen: int
    best_epoch: float
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
    from workers.tasks.training.train_loop import fit  # who asks for a training needs no torch

    return fit(request)
