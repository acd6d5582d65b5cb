"""A trained model on disk: weights in safetensors, the rest in JSON, no pickle."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from safetensors.torch import load_file, save_file

from peg_core.errors import ArtifactMismatch, InputError
from peg_core.models import MODELS
from peg_core.models.link_predictor import LinkPredictor, ModelSpec


def save_model(model: LinkPredictor, folder: Path) -> None:
    """Write ``model.json`` and ``weights.safetensors``."""
    folder.mkdir(parents=True, exist_ok=True)
    state = {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}
    save_file(state, folder / "weights.safetensors")
    (folder / "model.json").write_text(json.dumps(dataclasses.asdict(model.spec), indent=2))


def load_model(folder: Path) -> LinkPredictor:
    """Read a model written by :func:`save_model`, in evaluation mode."""
    if not (folder / "model.json").exists():
        raise InputError(f"{folder} holds no trained model: model.json is missing; train first")
    spec = ModelSpec(**json.loads((folder / "model.json").read_text()))
    model = MODELS[spec.kind](spec)
    state = load_file(folder / "weights.safetensors")
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        raise ArtifactMismatch.of(
            what=f"weights and description of {folder}", found=error, needed=spec
        ) from error
    return model.eval()
