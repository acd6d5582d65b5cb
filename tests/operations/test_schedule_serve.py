"""A real daemon over real runs; it is killed and started again on the way."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

from pipeline.cli.app import cli
from pipeline.run.runner import run_pipeline
from pipeline.schedule.schedule_store import ScheduleStore
from pipeline.schedule.tick import TickState

pytestmark = [pytest.mark.ray, pytest.mark.slow]


class Daemon:
    def __init__(self, store):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pipeline", "schedule", "serve", store, "--health-port", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        first = self.process.stdout.readline()
        assert first.startswith("serving"), first + self.process.stdout.read()
        self.health = first.split()[-1]

    def end(self, number):
        self.process.send_signal(number)
        output = self.process.communicate(timeout=60)[0]
        return self.process.returncode, output


def wait_until(condition, what):
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError(f"waited in vain for {what}")


def test_a_schedule_runs_once_a_tick_never_two_at_a_time_through_a_crash(
    small_config, small_pipeline, cluster, display
):
    run_pipeline(small_pipeline, display)  # ticks then find all stages done
    store = ScheduleStore(small_pipeline.store)
    arguments = ["--every", "4s", "--overlap", "queue", "--name", "often"]
    done = CliRunner().invoke(cli, ["schedule", "add", str(small_config), *arguments],
                              catch_exceptions=False)  # fmt: skip
    assert done.exit_code == 0, done.output

    def states():
        return [tick.state for tick in store.ticks("often")]

    first = Daemon(small_pipeline.store)
    wait_until(lambda: TickState.RUNNING in states(), "the first run")
    with urllib.request.urlopen(first.health, timeout=10) as answer:
        health = json.loads(answer.read())
    assert health["alive"]
    assert list(health["stores"][0]["next"]) == ["often"]
    first.end(signal.SIGKILL)  # while a run goes on

    second = Daemon(small_pipeline.store)
    wait_until(lambda: states().count(TickState.SUCCEEDED) >= 2, "two runs")
    store.remove("often")
    code, output = second.end(signal.SIGTERM)
    assert code == 0, output
    wait_until(lambda: store.pipeline_holder() is None, "the last run")

    history = pl.read_parquet(Path(small_pipeline.store) / "history" / "runs-often-*.parquet")
    runs = history.group_by("run").first().sort("started")
    succeeded = {t.submission_id for t in store.ticks("often") if t.state is TickState.SUCCEEDED}
    assert succeeded <= set(runs["run"])
    # no run began before the one before it had ended
    assert (runs["started"][1:] >= runs["finished"][:-1]).all()
    logs = Path(small_pipeline.store) / "logs"
    for run in succeeded:
        events = [
            json.loads(line)["event"] for line in (logs / f"{run}.jsonl").read_text().splitlines()
        ]
        assert events.count("run_started") == events.count("run_finished") == 1
    shown = CliRunner().invoke(cli, ["schedule", "history", small_pipeline.store, "--json"])
    assert {row["schedule"] for row in json.loads(shown.output)} == {"often"}
    # what a killed daemon's run became is known from its log, as nobody saw its exit code
    assert os.path.exists(logs / f"{sorted(succeeded)[0]}.out")
