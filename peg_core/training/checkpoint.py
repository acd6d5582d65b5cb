"""The state of a training run on disk: safetensors and JSON, never pickle."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import xxhash
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from peg_core.atomic_file import atomic_path
from peg_core.training.weight_average import WeightAverage


@dataclass
class TrainingState:
    """How far training is; ``best`` are the weights of the best validation.

    Random numbers come from the number of an epoch and of a step, so these two are
    all that a resumed run needs of them.

    Args:
        epoch: The epoch to run, or that is running.
        step: Steps of it that are done.
        losses: Of the steps that the next validation tells of.
        best_value: The best value of the validation metric so far.
        gain_value: Its value at the last gain, and ``gained`` when that was: an epoch, or a
            validation; see :class:`peg_core.training.course.Course`.
    """

    epoch: int = 0
    step: int = 0
    losses: list[float] = field(default_factory=list)
    best_value: float = -1.0
    best_epoch: float = -1
    history: list[dict[str, float]] = field(default_factory=list)
    best: dict[str, Tensor] = field(default_factory=dict)
    gain_value: float = -1.0
    gained: int = -1


FACTS = (
    *("epoch", "step", "losses", "best_value", "best_epoch"),
    *("gain_value", "gained", "history"),
)


def write_checkpoint(
    path: Path, state: TrainingState, average: WeightAverage, optimizer: torch.optim.Optimizer
) -> None:
    """Write everything that a resumed run needs to go on as if nothing had happened.

    Args:
        average: Of the model's weights; the model is found there.
    """
    saved = optimizer.state_dict()
    tensors = {f"model/{name}": value for name, value in average.model.state_dict().items()}
    tensors |= {f"best/{name}": value for name, value in state.best.items()}
    tensors |= {f"average/{name}": value for name, value in average.values.items()}
    for index, values in saved["state"].items():
        tensors |= {f"optimizer/{index}/{name}": value for name, value in values.items()}
    facts = {name: getattr(state, name) for name in FACTS}
    facts["param_groups"] = saved["param_groups"]
    facts["moves"] = average.moves
    tensors = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    facts["checksum"] = _checksum(facts, tensors)
    with atomic_path(path) as temporary:
        # one entry: safetensors writes several in any order
        save_file(tensors, temporary, metadata={"state": json.dumps(facts)})


def read_checkpoint(
    path: Path, average: WeightAverage, optimizer: torch.optim.Optimizer
) -> TrainingState:
    """Bring model, mean and optimizer back to the checkpoint.

    Without one, or with one that is not what was written, the state is a fresh one: training
    again from the start ends with the same weights.
    """
    whole = _read_whole(path)
    if whole is None:
        return TrainingState()
    facts, tensors = whole
    model = average.model
    model.load_state_dict(_under("model/", tensors))
    device = next(model.parameters()).device
    average.moves = facts.pop("moves")
    average.values = {n: value.to(device) for n, value in _under("average/", tensors).items()}
    slots: dict[int, dict[str, Any]] = {}
    for name, value in _under("optimizer/", tensors).items():
        index, slot = name.split("/")
        slots.setdefault(int(index), {})[slot] = value
    optimizer.load_state_dict({"state": slots, "param_groups": facts.pop("param_groups")})
    # before there was a least gain, every better value was one
    found = {"gain_value": facts["best_value"], "gained": facts["best_epoch"], **facts}
    return TrainingState(**found, best=_under("best/", tensors))


def is_damaged(path: Path) -> bool:
    """Whether there is a checkpoint that is not what was written."""
    return path.exists() and _read_whole(path) is None


def _read_whole(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]] | None:
    """Facts and tensors of a checkpoint; None where they are not what was written."""
    try:
        with safe_open(path, framework="pt") as file:
            facts = json.loads(file.metadata()["state"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        expected = facts.pop("checksum")
        return (facts, tensors) if expected == _checksum(facts, tensors) else None
    except (OSError, SafetensorError, AttributeError, KeyError, TypeError, ValueError):
        return None


def _checksum(facts: dict[str, Any], tensors: dict[str, Tensor]) -> str:
    found = xxhash.xxh3_128(json.dumps(facts, sort_keys=True).encode())
    for name in sorted(tensors):
        found.update(name.encode())
        found.update(tensors[name].flatten().view(torch.uint8).numpy().data)
    return found.hexdigest()


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): value
        for name, value in tensors.items()
        if name.startswith(prefix)
    }
