"""How Ray Train is set up for a training, and where it computes."""

from __future__ import annotations

import torch
import torch.distributed
from ray import train
from ray.train.torch import TorchConfig, get_device

from workers.tasks.training.train_resources import TrainResources

# A lost process is noticed by Ray Train. This only ends what hangs without a loss: honest work,
# such as the first look at a large graph on a slow disk, must never take as long.
EXCHANGE_TIMEOUT_SECONDS = 12 * 3600


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
