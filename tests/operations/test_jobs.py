"""Jobs on a real cluster: `ray start --head` with a token, dashboard on loopback."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from datetime import UTC, datetime

import polars as pl
import pytest
import requests
import yaml
from click.testing import CliRunner

from peg_core.errors import ConfigError
from pipeline.cli.app import cli
from pipeline.schedule.daemon import ScheduleDaemon
from pipeline.schedule.schedule_store import ScheduleStore
from pipeline.schedule.tick import UNFINISHED, Tick, TickState
from workers.jobs.job_client import JobAccessDenied, JobClient, JobExists

pytestmark = [pytest.mark.ray, pytest.mark.slow]


@pytest.fixture(autouse=True)
def environment(ray_head, monkeypatch, tmp_path):
    """What a user has: the token in the environment, and an address for other tools of Ray."""
    for name in [name for name in os.environ if name.startswith("RAY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RAY_AUTH_TOKEN", ray_head.environment["RAY_AUTH_TOKEN"])
    # Ray would take this address rather than the one that is asked for
    monkeypatch.setenv("RAY_ADDRESS", "http://127.0.0.1:1")


def peg(*arguments):
    return CliRunner().invoke(cli, [str(item) for item in arguments], catch_exceptions=False)


def wait_until(condition, what):
    for _ in range(600):
        if found := condition():
            return found
        time.sleep(0.1)
    raise AssertionError(f"waited in vain for {what}")


def scrape(node):
    """What Prometheus would read from the node."""
    url = f"http://127.0.0.1:{node.metrics_port}/metrics"
    return urllib.request.urlopen(url, timeout=10).read().decode()


def ingested_rows(text):
    return [line for line in text.splitlines()
            if line.startswith("ray_peg_stage_rows{") and 'stage="ingest"' in line]  # fmt: skip


def test_a_stopped_job_is_refused_under_its_id_and_goes_on_under_another(small_config, ray_head):
    store = small_config.parent / "store"
    address = ("--address", ray_head.dashboard)
    first = peg("submit", small_config, *address, "--no-wait")
    job = first.output.split()[0]
    wait_until(lambda: list(store.glob("split/*/manifest.json")), "the split")
    [rows] = wait_until(lambda: ingested_rows(scrape(ray_head)), "metrics of finished stages")
    assert 'pipeline="small"' in rows
    assert "stopped" in peg("jobs", "stop", job, *address).output
    assert not list(store.glob("report/*/manifest.json"))
    with pytest.raises(JobExists, match=f"{job} already exists and is STOPPED"):
        peg("submit", small_config, *address)

    done = peg("submit", small_config, *address, "--id", "second", "--with-package")
    assert done.exit_code == 0, done.output
    second = done.output.split()[0]
    reused = [line.split()[0] for line in done.output.splitlines() if " reused " in line]
    assert reused[:3] == ["ingest", "features", "split"]
    assert "report     done" in done.output
    assert done.output.rstrip().endswith(f"succeeded  {second}")
    assert (store / "current" / "report" / "report.html").exists()

    listed = json.loads(peg("jobs", "list", "--json", *address).output)
    states = {row["submission_id"]: row["status"] for row in listed}
    assert (states[job], states[second]) == ("STOPPED", "SUCCEEDED")
    shown = peg("jobs", "logs", second, *address)
    assert "report     done" in shown.output
    history = pl.read_parquet(store / "history" / "*.parquet")
    assert set(history.filter(run=job)["outcome"]) == {"interrupted"}
    [score] = history.filter(run=second, stage="score").to_dicts()
    assert (score["action"], score["rows"], score["outcome"]) == ("run", 600, "succeeded")

    token = ray_head.environment["RAY_AUTH_TOKEN"]
    assert not [output for output in (first, done, shown) if token in output.output]
    kept = [path for path in small_config.parent.rglob("*") if path.is_file()]
    assert not [path for path in kept if token.encode() in path.read_bytes()]


def test_a_scheduled_job_is_submitted_once_and_its_end_is_seen(small_config, ray_head):
    """The edges are missing, so that the job ends soon."""
    (small_config.parent / "edges.parquet").unlink()
    cluster = small_config.with_name("cluster.yaml")
    cluster.write_text("cluster: {workers: 3}")
    schedule = [
        "schedule", "add", small_config, "--every", "1h", "--address", ray_head.dashboard,
        "--cluster", cluster, "--env", "CHOSEN=here", "--driver-cpus", "0.5",
        "--driver-memory", "100MB",
    ]  # fmt: skip
    with pytest.raises(ConfigError, match=r"`graph.edges` \(not found here\).* --shared-paths"):
        peg(*schedule)
    assert peg(*schedule, "--shared-paths").exit_code == 0
    store = ScheduleStore(str(small_config.parent / "store"))
    daemon = ScheduleDaemon(store)
    tick = daemon.ask(Tick.of(store.get("small"), datetime.now(UTC), store.store, kind="manual"))
    daemon.step(datetime.now(UTC))
    [running] = store.ticks()
    assert running.state is TickState.RUNNING
    # as if the daemon had ended between the submission and its record
    store.save(running.change(state=TickState.STARTING))
    again = ScheduleDaemon(store)

    def is_finished() -> bool:
        again.step(datetime.now(UTC))
        return all(tick.state not in UNFINISHED for tick in store.ticks())

    wait_until(is_finished, "the end of the job")
    [ended] = store.ticks()
    assert (ended.state, ended.exit_code, ended.attempt) == (TickState.FAILED, 1, 1)
    jobs = JobClient(ray_head.dashboard).jobs()
    [job] = [job for job in jobs if job.submission_id.startswith(f"small-{tick.due}")]
    assert job.submission_id == tick.submission_id
    assert "cluster.workers=3" in job.entrypoint
    asked = requests.get(
        f"{ray_head.dashboard}/api/jobs/{job.submission_id}",
        headers={"Authorization": f"Bearer {ray_head.environment['RAY_AUTH_TOKEN']}"},
    ).json()
    assert asked["runtime_env"]["env_vars"]["CHOSEN"] == "here"


def test_a_job_that_fails_gives_its_exit_code(small_config, ray_head):
    settings = yaml.safe_load(small_config.read_text())
    settings["graph"]["edges"] = str(small_config.parent / "nothing.parquet")
    small_config.write_text(yaml.safe_dump(settings))
    done = subprocess.run(
        [sys.executable, "-m", "pipeline", "submit", small_config, "--shared-paths",
         "--address", ray_head.dashboard],
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert "no Parquet file at" in done.stdout
    status = peg("jobs", "status", done.stdout.split()[0], "--address", ray_head.dashboard)
    assert "failed" in status.output
    assert "exit code 1" in status.output


@pytest.mark.parametrize(
    ("token", "message"),
    [(None, "asks for a token, but none was found"), ("wrong", "refused the token")],
)
def test_a_client_without_the_token_is_refused(
    token, message, small_config, ray_head, monkeypatch, tmp_path
):
    monkeypatch.delenv("RAY_AUTH_TOKEN")
    if token:
        file = tmp_path / "token"
        file.write_text(token)
        file.chmod(0o600)
        monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(file))
    with pytest.raises(JobAccessDenied, match=message):
        peg("submit", small_config, "--address", ray_head.dashboard)
