"""What Ray reserves for a training."""

import pytest
import torch

from peg_core.errors import ConfigError
from workers.tasks.training.ray_train import device_of, exchange, scaling
from workers.tasks.training.train_resources import TrainResources, task_resources


def wanted(workers, gpus):
    return TrainResources(
        workers=workers,
        cpus_per_worker=6,
        gpus_per_worker=gpus,
        retries=0,
        checkpoint_every=1,
        checkpoint_steps=None,
        memory_bytes=2 * 10**9,
    )


@pytest.mark.parametrize("gpus", [0, 0.5, 1, 2])
def test_a_task_that_trains_itself_holds_what_it_trains_with(gpus):
    assert task_resources(wanted(1, gpus)) == {
        "cpus": 6,
        "gpus": gpus,
        "memory_bytes": 2 * 10**9,
    }
    assert scaling(wanted(1, gpus), 10**9).num_workers == 0


@pytest.mark.parametrize("gpus", [0, 1, 2.0])
@pytest.mark.parametrize("workers", [4, (1, 4), (1, 1)])
def test_a_task_that_waits_for_workers_leaves_everything_to_them(workers, gpus):
    assert task_resources(wanted(workers, gpus)) == {
        "cpus": 0,
        "gpus": 0,
        "memory_bytes": 0,
    }
    found = scaling(wanted(workers, gpus), 10**9)
    assert found.num_workers == workers
    assert found.resources_per_worker == {"CPU": 6, "GPU": gpus, "memory": 10**9}
    assert found.use_gpu == (gpus > 0)
    assert found.placement_strategy == "SPREAD"


@pytest.mark.parametrize("workers", [2, (1, 4)])
def test_workers_that_would_share_a_gpu_are_refused(workers):
    with pytest.raises(ConfigError, match=r"`cluster.gpus_per_worker` is 0\.5.*whole GPUs"):
        task_resources(wanted(workers, 0.5))


def test_workers_wait_for_each_other_for_hours():
    assert exchange(wanted(2, 0)).backend == "gloo"
    assert exchange(wanted(2, 0)).timeout_s >= 3600
    over_gpus = "cpu:gloo,cuda:nccl" if torch.distributed.is_nccl_available() else "gloo"
    assert exchange(wanted(2, 1)).backend == over_gpus


def test_without_gpus_of_its_own_a_training_stays_on_the_cpu():
    assert device_of(wanted(1, 0)) == torch.device("cpu")
