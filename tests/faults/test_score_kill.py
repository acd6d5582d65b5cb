"""Scoring loses a worker, its driver or a machine: every row is there, and once."""

import contextlib
import json
import os
import signal
import time

import numpy as np
import polars as pl
import psutil
import pytest
from ray.cluster_utils import Cluster

from pipeline.cli.app import cli

pytestmark = [pytest.mark.ray, pytest.mark.slow]

SHARDS = 40
SHARD_ROWS = 5_000


@pytest.fixture(scope="module")
def candidates(trained_run, tmp_path_factory):
    """Forty row groups of pairs, some of them unknown."""
    file = tmp_path_factory.mktemp("many") / "candidates.parquet"
    pairs = np.random.default_rng(2).integers(0, 125, size=(2, SHARDS * SHARD_ROWS))
    table = pl.DataFrame({"src": pairs[0], "dst": pairs[1]}).with_row_index("row")
    table.write_parquet(file, row_group_size=SHARD_ROWS)
    return file


def arguments(config, candidates, out, *more):
    options = ["--run", config, "--candidates", candidates, "--out", out]
    return ["score", *map(str, [*options, "--shard-rows", SHARD_ROWS, *more])]


def scored_here(config, candidates, out):
    cli.main(arguments(config, candidates, out), standalone_mode=False)
    return out


@pytest.fixture(scope="module")
def uninterrupted(trained_run, candidates, tmp_path_factory):
    return scored_here(trained_run, candidates, tmp_path_factory.mktemp("whole") / "scores")


def wait_for_shards(out, count, process):
    """Until ``count`` shards are finished."""
    while len(list(out.glob("done/*.json"))) < count:
        assert process.poll() is None, process.output
        time.sleep(0.005)


def shard_workers():
    """Processes of this session's Ray that are at work on a shard."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            found += [process] if "run_shard" in process.name() else []
    return found


def require_equal(out, expected):
    """The same files with the same rows, and nothing beside them."""
    assert not [file for file in out.rglob("*") if file.name.startswith(".")]
    names = sorted(file.name for file in expected.glob("*.parquet"))
    assert sorted(file.name for file in out.glob("*.parquet")) == names
    assert len(names) == SHARDS
    for name in names:
        assert pl.read_parquet(out / name).equals(pl.read_parquet(expected / name)), name
    found = pl.read_parquet([out / name for name in names])
    assert found["row"].equals(pl.int_range(SHARDS * SHARD_ROWS, eager=True, dtype=pl.UInt32))
    counts = [json.loads((f / "manifest.json").read_text())["counts"] for f in (out, expected)]
    assert counts[0] == counts[1]


def test_a_killed_worker_changes_nothing(
    trained_run, candidates, uninterrupted, start_peg, ray_address, tmp_path
):
    out = tmp_path / "scores"
    process = start_peg(*arguments(trained_run, candidates, out, "--address", ray_address))
    wait_for_shards(out, 1, process)
    killed = 0
    while not killed and process.poll() is None:
        for worker in shard_workers()[:1]:
            os.kill(worker.pid, signal.SIGKILL)
            killed += 1
    assert process.wait() == 0, process.output
    assert killed, process.output
    require_equal(out, uninterrupted)


def test_a_killed_driver_is_started_again_and_redoes_only_what_is_missing(
    trained_run, candidates, uninterrupted, start_peg, ray_address, tmp_path
):
    out = tmp_path / "scores"
    process = start_peg(*arguments(trained_run, candidates, out, "--address", ray_address))
    wait_for_shards(out, 3, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (out / "manifest.json").exists()
    while shard_workers():  # its tasks end with it
        time.sleep(0.05)
    finished = {file.stem for file in out.glob("done/*.json")}
    assert 3 <= len(finished) < SHARDS
    before = {name: (out / f"{name}.parquet").stat().st_mtime_ns for name in finished}
    scored_here(trained_run, candidates, out)
    assert before == {name: (out / f"{name}.parquet").stat().st_mtime_ns for name in finished}
    require_equal(out, uninterrupted)


@pytest.mark.usefixtures("own_sigterm")
def test_a_machine_that_goes_away_changes_nothing(
    trained_run, candidates, uninterrupted, start_peg, tmp_path
):
    machines = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        second = machines.add_node(num_cpus=1)
        machines.wait_for_nodes()
        out = tmp_path / "scores"
        process = start_peg(*arguments(trained_run, candidates, out, "--address", machines.address))
        wait_for_shards(out, 4, process)
        machines.remove_node(second, allow_graceful=False)
        assert not (out / "manifest.json").exists()
        assert process.wait() == 0, process.output
        require_equal(out, uninterrupted)
    finally:
        machines.shutdown()
