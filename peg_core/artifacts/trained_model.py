"""A trained model on disk: weights in safetensors, the rest in JSON, no pickle."""

from __future__ import annotations

import dataclasses
import json
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from peg_core.artifacts.manifest import Manifest
from peg_core.artifacts.recipe import Recipe
from peg_core.atomic_file import atomic_path, copy_file, write_json
from peg_core.errors import ArtifactMismatch, InputError
from peg_core.graph.node_features import transform_file
from peg_core.metrics.calibration import Calibration
from peg_core.models import MODELS
from peg_core.models.model_spec import ModelSpec
from peg_core.storage.stored_path import bring_latest

if TYPE_CHECKING:
    from peg_core.models.link_predictor import LinkPredictor

SPEC_NAME = "model.json"
RAY_STORAGE = "ray_train"
PROGRESS_SECONDS = 2.0


@dataclass(frozen=True)
class TrainedModel:
    """One model: weights, the recipe that makes a graph ready for it, and its calibration.

    While it is trained its checkpoint lives in the same folder.

    Args:
        folder: Where it is kept.
        calibration: From logits to probabilities; None where it was never calibrated.
    """

    folder: Path
    calibration: Calibration | None = None

    @classmethod
    def open(cls, folder: Path) -> Self:
        return cls(folder)

    @property
    def exists(self) -> bool:
        return (self.folder / SPEC_NAME).exists()

    @cached_property
    def spec(self) -> ModelSpec:
        if not self.exists:
            raise InputError(
                f"{self.folder} holds no trained model: {SPEC_NAME} is missing; train first"
            )
        return ModelSpec(**json.loads((self.folder / SPEC_NAME).read_text()))

    @cached_property
    def network(self) -> LinkPredictor:
        """The model with its weights, in evaluation mode."""
        from safetensors.torch import load_file  # what asks for the spec alone needs no torch

        network = MODELS[self.spec.kind](self.spec)
        state = load_file(self.weights_file)
        try:
            network.load_state_dict(state)
        except RuntimeError as error:
            raise ArtifactMismatch.of(
                what=f"weights and description of {self.folder}", found=error, needed=self.spec
            ) from error
        return network.eval()

    @property
    def recipe(self) -> Recipe:
        return Recipe.read(self.folder)

    @property
    def transform_file(self) -> Path | None:
        """How node features are made ready for the model, where something was fitted."""
        file = transform_file(self.folder)
        return file if file.exists() else None

    @property
    def weights_file(self) -> Path:
        return self.folder / "weights.safetensors"

    @property
    def checkpoint_file(self) -> Path:
        return self.folder / "checkpoint.safetensors"

    @property
    def scratch(self) -> Path:
        """Where this machine keeps the graphs without a fold while a sampled training runs."""
        return Path(str(self.folder / "folds"))

    @property
    def ray_storage(self) -> Path:
        """What Ray Train wants to write, where no other machine has to see it."""
        return Path(str(self.folder / RAY_STORAGE))

    def save(self, network: LinkPredictor) -> None:
        """Write the weights and what they belong to."""
        from safetensors.torch import save_file

        state = {
            name: value.detach().cpu().contiguous() for name, value in network.state_dict().items()
        }
        with atomic_path(self.weights_file) as temporary:
            save_file(state, temporary)
        write_json(self.folder / SPEC_NAME, dataclasses.asdict(network.spec))

    def save_recipe(self, recipe: Recipe, features: Path) -> None:
        """Write what the model needs of any graph, so that it can travel.

        Args:
            features: Folder of the features that it was trained with.
        """
        fitted = transform_file(features)
        if fitted.exists():
            copy_file(fitted, transform_file(self.folder))
        recipe.write(self.folder)

    def write_summary(self, facts: dict[str, Any]) -> None:
        write_json(self.folder / "training.json", facts)

    def summary(self) -> dict[str, Any]:
        """What the training came to."""
        facts: dict[str, Any] = json.loads((self.folder / "training.json").read_text())
        return facts

    def write_progress(self, facts: dict[str, Any]) -> None:
        write_json(self.progress_file, facts)

    @property
    def progress_file(self) -> Path:
        return self.folder / "progress.json"

    def progress(self) -> dict[str, Any] | None:
        """What the training wrote last, while it runs, wherever it runs."""
        file = self.progress_file
        try:
            if _is_old(file):
                bring_latest(file)
            found = json.loads(file.read_bytes())
        except (OSError, ValueError):  # not there yet, or broken: the next epoch writes it again
            return None
        return found if isinstance(found, dict) else None


def _is_old(file: Path) -> bool:
    """Whether what is on this machine was written some time ago, or never."""
    local = Path(str(file))
    return not local.exists() or time.time() - local.stat().st_mtime > PROGRESS_SECONDS


def seed_part(seed: int) -> str:
    """The folder of the model that was trained from a seed, in every artifact that has one."""
    return f"seed-{seed}"


@dataclass(frozen=True)
class Training:
    """The models of one training, one per seed."""

    folder: Path

    @classmethod
    def open(cls, folder: Path) -> Self:
        return cls(folder)

    @property
    def best_seed(self) -> int:
        """Of the model that was best on the validation pairs."""
        return int(Manifest.require(self.folder).details["best_seed"])

    def model(self, seed: int | None = None) -> TrainedModel:
        """The model of a seed; none: the best one."""
        return TrainedModel(self.folder / seed_part(self.best_seed if seed is None else seed))

    @property
    def epochs_file(self) -> Path:
        """Loss and validation of every epoch, a Parquet table."""
        return self.folder / "epochs.parquet"
