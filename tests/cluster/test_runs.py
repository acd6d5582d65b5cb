"""A pipeline on machines that share nothing but an object store."""

import os
import sys
import time

import polars as pl
import pytest

from tests.cluster.machine import ROOT
from tests.cluster.small_run import (
    CANDIDATES,
    SHARD_ROWS,
    SmallRun,
    data_of,
    from_stage,
    lose_machine_at_work,
    run_when_free,
    start_run,
)
from tests.faults.chaos.results import differences, store_leftovers

pytestmark = [pytest.mark.ray, pytest.mark.slow]

WORKERS = {"address": "auto", "workers": 2}
STAGES_LOST = ("ingest", "encode", "train", "embed", "score")
# Every stage takes half a minute: the others are lost when PEG_CLUSTER_ALL is set.
ALWAYS_LOST = ("score",)
# It names the files of the graph, which are elsewhere.
RECIPE = ["train/seed-0/recipe.json"]
ALL = bool(os.environ.get("PEG_CLUSTER_ALL"))
ONLY_ALL = pytest.mark.skipif(not ALL, reason="takes long: set PEG_CLUSTER_ALL=1")


@pytest.fixture(scope="module")
def small_run(objects, tmp_path_factory):
    return SmallRun(objects, tmp_path_factory.mktemp("inputs"))


class Alone:
    """What the pipeline computes on one machine with a local Ray and a folder as its store.

    The last bits of a training may depend on whether kernels were compiled or loaded.
    """

    def __init__(self, machine, small_run):
        self._machine, self._small_run = machine, small_run
        before = compiled_kernels()
        self.data = self._run("store-1")
        # by this run or by other tests: nobody can tell
        self._may_have_compiled = compiled_kernels() != before

    def difference(self, found):
        """Files that differ; a run that may have compiled its kernels is not the last word."""
        names = differences(self.data, found)
        if names != RECIPE and self._may_have_compiled:
            self.data, self._may_have_compiled = self._run("store-2"), False
            names = differences(self.data, found)
        return names

    def _run(self, name):
        file = self._small_run.file_on(self._machine, None, workers=2)
        store = self._machine.inside / "home" / name
        started = start_run(self._machine, file, {}, "--set", f"store={store}")
        assert started.wait() == 0, started.output
        return data_of(self._machine.disk / "home" / name)


def compiled_kernels():
    return {file.name for file in (ROOT / "peg_core").rglob("*.nb[ic]")}


@pytest.fixture(scope="module")
def alone(network, small_run):
    """Runs before the cluster does, which then finds all kernels compiled."""
    return Alone(network.add(), small_run)


@pytest.fixture(scope="module")
def submission(alone, small_run, ray_machines, client):
    """A store that was filled by a job, and what the machine that submitted it was told."""
    store = small_run.new_store()
    file = small_run.file_on(client, store, workers=2)
    output = client.run(
        sys.executable, "-m", "pipeline", "submit", file, "--address", ray_machines.dashboard,
        env=ray_machines.environment,
    )  # fmt: skip
    return store, output


@pytest.fixture(scope="module")
def on_cluster(submission):
    return submission[0]


def require_finite_scores(small_run, store, folder):
    results = small_run.results(store, folder)
    parts = [data for name, data in results.items() if name.startswith("score/part")]
    scores = pl.concat([pl.read_parquet(data) for data in parts])["score"]
    assert len(scores) == CANDIDATES
    assert scores.is_finite().all()
    assert 0 <= scores.min() < scores.max() <= 1


def test_a_machine_without_data_submits_a_run_that_computes_what_one_machine_computes(
    small_run, submission, alone, ray_machines, tmp_path
):
    """To the bit: graph, encodings, weights, metrics, scores and recommendations."""
    store, output = submission
    assert "succeeded" in output
    assert ray_machines.environment["RAY_AUTH_TOKEN"] not in output
    assert alone.difference(small_run.results(store, tmp_path)) == RECIPE
    assert store_leftovers(tmp_path) == []
    stages = {name.split("/")[0] for name in alone.data}
    assert {"ingest", "encode", "train", "evaluate", "score", "recommend"} <= stages


@ONLY_ALL
def test_a_run_started_on_the_head_computes_the_same(small_run, alone, ray_machines, tmp_path):
    store = small_run.new_store()
    file = small_run.file_on(ray_machines.head, store, **WORKERS)
    started = start_run(ray_machines.head, file, ray_machines.environment)
    assert started.wait() == 0, started.output
    assert alone.difference(small_run.results(store, tmp_path)) == RECIPE


@ONLY_ALL
def test_two_machines_train_one_model(small_run, on_cluster, ray_machines, tmp_path):
    store = small_run.copy_of(on_cluster, without=from_stage("train"))
    file = small_run.file_on(ray_machines.head, store, **WORKERS, train_workers=2)
    less = ("--set", "recommend=null", "--set", "evaluate.protocol=random")
    started = start_run(ray_machines.head, file, ray_machines.environment, *less)
    assert started.wait() == 0, started.output
    require_finite_scores(small_run, store, tmp_path)


def test_a_run_is_taken_over_by_another_machine_shard_by_shard(
    small_run, on_cluster, ray_machines, tmp_path
):
    """The power of the driver's machine is cut in the middle of scoring."""
    store = small_run.copy_of(on_cluster, without=("score",))
    first, second = ray_machines.workers
    file = small_run.file_on(first, store, **WORKERS)
    started = start_run(first, file, ray_machines.environment, short_lease=True)
    while len(finished_shards(small_run, store)) < 3:
        assert started.poll() is None, started.output
    ray_machines.lose(first)
    before = settled(small_run, store)
    assert 3 <= len(before) < CANDIDATES // SHARD_ROWS
    again = run_when_free(second, small_run.file_on(second, store, **WORKERS),
                          ray_machines.environment)  # fmt: skip
    assert again.poll() == 0, again.output
    after = finished_shards(small_run, store)
    assert len(after) == CANDIDATES // SHARD_ROWS
    assert {name: after[name] for name in before} == before
    folder = tmp_path / "taken-over"
    expected = small_run.results(on_cluster, tmp_path / "whole")
    assert differences(expected, small_run.results(store, folder)) == []
    assert store_leftovers(folder) == []


def finished_shards(small_run, store):
    """The marks of shards and what they stand for, by name, with their times."""
    found = small_run.objects.objects(f"{store}/score")
    marks = {name: there for name, there in found.items() if "/done/" in name}
    parts = {name: name.replace("/done/", "/").replace(".json", ".parquet") for name in marks}
    return {name: (marks[name], found.get(parts[name])) for name in marks}


def settled(small_run, store):
    """The finished shards when the tasks of a killed run have ended, too."""
    while True:
        before = finished_shards(small_run, store)
        time.sleep(3)
        if finished_shards(small_run, store) == before:
            return before


@pytest.mark.parametrize(
    "stage",
    [s if s in ALWAYS_LOST else pytest.param(s, marks=ONLY_ALL) for s in STAGES_LOST],
)
def test_a_machine_lost_in_a_stage_changes_no_byte(
    stage, small_run, on_cluster, ray_machines, tmp_path
):
    store = small_run.copy_of(on_cluster, without=(stage,))
    file = small_run.file_on(ray_machines.head, store, **WORKERS)
    started = start_run(ray_machines.head, file, ray_machines.environment)
    lose_machine_at_work(ray_machines, started, stage)
    assert started.wait() == 0, started.output
    expected = small_run.results(on_cluster, tmp_path / "whole")
    folder = tmp_path / "disturbed"
    assert differences(expected, small_run.results(store, folder)) == []
    assert store_leftovers(folder) == []
