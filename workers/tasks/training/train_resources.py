"""What Ray reserves for a training, and where it computes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import torch
import torch.distributed
from ray import train
from ray.train.torch import TorchConfig, get_device

from peg_core.errors import ConfigError

# A lost process is noticed by Ray Train. This only ends what hangs without a loss: honest work,
# such as the first look at a large graph on a slow disk, must never take as long.
EXCHANGE_TIMEOUT_SECONDS = 12 * 3600


@dataclass(frozen=True)
class TrainResources:
    """Where a model is trained and how often its state is saved; no result depends on it.

    Args:
        workers: Ray Train workers, or (least, most); 1 runs the loop in the process that asks.
        checkpoint_every: Epochs between checkpoints.
        checkpoint_steps: Steps between checkpoints within an epoch; None: no such ones.
    """

    workers: int | tuple[int, int]
    cpus_per_worker: int
    gpus_per_worker: float
    retries: int
    checkpoint_every: int
    checkpoint_steps: int | None
    memory_bytes: int = 0


class TaskResources(TypedDict):
    """What Ray reserves for a task."""

    cpus: int
    gpus: float
    memory_bytes: int


def task_resources(wanted: TrainResources) -> TaskResources:
    """What the task that starts a training needs for itself.

    With Ray Train workers it only waits for them. They need the GPUs that it would hold: Ray
    takes back the CPUs of a task that waits, but not its GPUs.

    Raises:
        ConfigError: The workers could not exchange gradients.
    """
    if wanted.workers == 1:
        return TaskResources(
            cpus=wanted.cpus_per_worker,
            gpus=wanted.gpus_per_worker,
            memory_bytes=wanted.memory_bytes,
        )
    if not float(wanted.gpus_per_worker).is_integer():
        raise ConfigError(
            f"`cluster.gpus_per_worker` is {wanted.gpus_per_worker} and `cluster.train_workers` is "
            f"{wanted.workers}: workers that train one model together need whole GPUs, they "
            "cannot exchange gradients on a shared one; set `gpus_per_worker` to 1, or "
            "`train_workers` to 1"
        )
    return TaskResources(cpus=0, gpus=0, memory_bytes=0)


def scaling(wanted: TrainResources, most_memory_bytes: int) -> train.ScalingConfig:
    """Starting Ray Train workers takes longer than a small training: one worker needs none."""
    if wanted.workers == 1:
        return train.ScalingConfig(num_workers=0, use_gpu=wanted.gpus_per_worker > 0)
    resources = {
        "CPU": wanted.cpus_per_worker,
        "GPU": wanted.gpus_per_worker,
        "memory": min(wanted.memory_bytes, most_memory_bytes),
    }
    return train.ScalingConfig(
        num_workers=wanted.workers,  # type: ignore[arg-type]  # a range too, since Ray Train v2
        use_gpu=wanted.gpus_per_worker > 0,
        resources_per_worker=resources,
        placement_strategy="SPREAD",  # each prepares its own steps: their memory adds up
    )


def exchange(wanted: TrainResources) -> TorchConfig:
    """How workers exchange gradients and scores: the latter are never on a GPU."""
    on_gpus = wanted.gpus_per_worker > 0 and torch.distributed.is_nccl_available()
    backend = "cpu:gloo,cuda:nccl" if on_gpus else "gloo"
    return TorchConfig(backend=backend, timeout_s=EXCHANGE_TIMEOUT_SECONDS)


def device_of(wanted: TrainResources) -> torch.device:
    """The GPU that was asked for and reserved; Ray Train takes any that it sees."""
    if wanted.gpus_per_worker > 0 and torch.cuda.is_available():
        return get_device()
    return torch.device("cpu")
