"""What Ray reserves for a training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from peg_core.errors import ConfigError


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
