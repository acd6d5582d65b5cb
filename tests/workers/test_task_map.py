import json
import os
import signal
import threading
import time
from pathlib import Path

import numba
import numpy as np
import pytest
import ray

from peg_core.errors import DiskFull, InputError, PegError
from workers.cluster import Cluster
from workers.cluster_settings import ClusterSettings
from workers.shard import Shard
from workers.task_map import TaskMap

pytestmark = pytest.mark.ray


def double(value: int, calls: str) -> dict:
    Path(calls, f"{value}-{time.time_ns()}").touch()
    return {"value": 2 * value}


def fail_on_three(value: int) -> dict:
    if value == 3:
        raise InputError("the third file is bad")
    return {"value": value}


def die_the_first_time(folder: str) -> dict:
    marker = Path(folder, "died")
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"value": 1}


def die_always() -> dict:
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def count_running(folder: str, name: str) -> dict:
    mine = Path(folder, name)
    mine.touch()
    most = 0
    for _ in range(10):
        most = max(most, len(list(Path(folder).iterdir())))
        time.sleep(0.02)
    mine.unlink()
    return {"most": most}


def threads() -> dict:
    import torch

    return {"torch": torch.get_num_threads(), "numba": numba.get_num_threads()}


def threads_there(value: int) -> dict:
    import numba  # in the task's process

    del value
    return {"numba": numba.get_num_threads(), "environment": os.environ["OMP_NUM_THREADS"]}


def sleep_long(folder: str) -> dict:
    Path(folder, "started").touch()
    time.sleep(60)
    Path(folder, "finished").touch()
    return {}


def task_map(cluster, task, shards, *, markers, **options):
    return TaskMap(cluster, markers).map(task, shards, **options)


def shards(values, **more):
    return [Shard(f"shard-{value}", {"value": value, **more}) for value in values]


def test_results_come_in_the_order_of_the_shards(cluster, tmp_path):
    results = task_map(
        cluster, double, shards(range(7), calls=str(tmp_path)), markers=tmp_path / "done"
    )
    assert [result["value"] for result in results] == [0, 2, 4, 6, 8, 10, 12]


def test_finished_shards_are_not_run_again(cluster, tmp_path):
    calls = tmp_path / "calls"
    calls.mkdir()
    progress = []
    for values in (range(3), range(5)):
        progress.clear()
        results = task_map(
            cluster,
            double,
            shards(values, calls=str(calls)),
            markers=tmp_path / "done",
            on_progress=lambda p: progress.append((p.done, p.total)),
        )
    assert [result["value"] for result in results] == [0, 2, 4, 6, 8]
    assert sorted(path.name.split("-")[0] for path in calls.iterdir()) == list("01234")
    assert progress[:4] == [(1, 5), (2, 5), (3, 5), (3, 5)]
    assert progress[-1] == (5, 5)


def test_memory_is_counted_apart_from_results_also_of_finished_shards(cluster, tmp_path):
    for _ in range(2):  # the second time all shards have their markers
        tasks = TaskMap(cluster, tmp_path / "done")
        results = tasks.map(double, shards(range(2), calls=str(tmp_path)))
        assert results == [{"value": 0}, {"value": 2}]
        assert 10**6 < tasks.peak_bytes < 10**11
        assert tasks.retries == 0


def test_a_shard_that_other_tasks_did_is_not_run(cluster, tmp_path):
    calls = tmp_path / "calls"
    calls.mkdir()
    tasks = TaskMap(cluster, tmp_path / "done")
    tasks.mark("shard-1", {"value": 100})
    results = tasks.map(double, shards(range(2), calls=str(calls)))
    assert results == [{"value": 0}, {"value": 100}]
    assert [path.name.split("-")[0] for path in calls.iterdir()] == ["0"]


def test_the_user_is_told_how_many_shards_are_done(cluster, tmp_path):
    told = []
    tasks = TaskMap(cluster, tmp_path / "done", lambda *said: told.append(said))
    tasks.map(double, shards(range(2), calls=str(tmp_path)), note="doubling")
    assert told[0] == (0, 2, "doubling")
    assert told[-1] == (2, 2, "doubling")


def test_an_error_of_a_task_arrives_as_it_is_and_its_shard_is_not_marked(cluster, tmp_path):
    with pytest.raises(InputError, match=r"^the third file is bad$"):
        task_map(cluster, fail_on_three, shards(range(5)), markers=tmp_path)
    assert not (tmp_path / "shard-3.json").exists()


def write_to(file: str) -> dict:
    np.save(file, np.zeros(1 << 14))
    return {}


def test_a_full_disk_is_told_also_where_numpy_does_not_say_so(cluster, tmp_path):
    (tmp_path / "full.npy").symlink_to("/dev/full")
    shard = Shard("a", {"file": str(tmp_path / "full.npy")})
    with pytest.raises(DiskFull, match=r"no room left on the disk for task a .*`peg gc`"):
        task_map(cluster, write_to, [shard], markers=tmp_path / "done")


def test_a_task_whose_worker_is_killed_is_run_again(cluster, tmp_path):
    tasks = TaskMap(cluster, tmp_path / "done")
    (result,) = tasks.map(die_the_first_time, [Shard("one", {"folder": str(tmp_path)})])
    assert result["value"] == 1
    assert tasks.retries == 1
    assert json.loads((tmp_path / "done" / "one.json").read_text())["value"] == 1


def test_a_task_that_always_dies_is_given_up_with_advice(cluster, tmp_path):
    impatient = Cluster(ClusterSettings(workers=1, retries=1))
    with pytest.raises(PegError, match=r"task one was lost .* lower `cluster.workers`"):
        task_map(impatient, die_always, [Shard("one")], markers=tmp_path)


def test_no_more_tasks_than_workers_run_side_by_side(cluster, tmp_path):
    (tmp_path / "running").mkdir()
    results = task_map(
        cluster,
        count_running,
        [Shard(f"{i}", {"folder": str(tmp_path / "running"), "name": f"{i}"}) for i in range(6)],
        markers=tmp_path / "done",
    )
    assert max(result["most"] for result in results) <= cluster.settings.workers


def test_threads_are_pinned_to_the_cpus_of_the_task(cluster, tmp_path):
    (result,) = task_map(cluster, threads, [Shard("one")], markers=tmp_path)
    assert (result["torch"], result["numba"]) == (1, 1)


@pytest.fixture
def heeded_interrupts():
    """A shell that starts the tests in the background makes them ignore interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_interrupting_cancels_the_tasks_under_way(cluster, tmp_path, heeded_interrupts):
    def interrupt() -> None:
        while not (tmp_path / "started").exists():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        task_map(
            cluster,
            sleep_long,
            [Shard("one", {"folder": str(tmp_path)})],
            markers=tmp_path / "done",
        )
    thread.join()
    assert not (tmp_path / "done" / "one.json").exists()
    wait_until_idle()


def wait_until_idle() -> None:
    total = ray.cluster_resources()["CPU"]
    for _ in range(200):
        if ray.available_resources().get("CPU") == total:
            return
        time.sleep(0.05)
    raise AssertionError("a cancelled task still holds its CPU")


def test_a_task_with_more_cpus_has_as_many_threads_but_no_more_than_a_machine(cluster, tmp_path):
    """The machine of these tests has three CPUs, as Ray counts."""
    for cpus, expected in ((None, 1), (2, 2), (50, 3)):
        tasks = TaskMap(cluster, tmp_path / str(cpus))
        (found,) = tasks.map(threads_there, [Shard("one", {"value": 0})], cpus=cpus)
        assert found == {"numba": expected, "environment": str(expected)}
