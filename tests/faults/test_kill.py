"""A run that is killed, in any stage, goes on as if nothing had happened."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from pipeline.runner import plan_run

pytestmark = [pytest.mark.ray, pytest.mark.slow]

# Timings and memory differ from run to run; the report shows them.
NOT_COMPARED = {"manifest.json", "report.html", "progress.json"}


def start(config, address):
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "pipeline",
            "run",
            str(config),
            "--set",
            f"cluster.address={address}",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(config, address):
    process = start(config, address)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    return output


def wait_for(condition, process):
    while not condition():
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.002)


def contents(store: Path) -> dict[str, bytes]:
    """Every file of every artifact, by stage and name; markers without their measurements."""
    found = {}
    for link in (store / "current").iterdir():
        for path in sorted(link.resolve().rglob("*")):
            if path.is_dir() or path.name in NOT_COMPARED:
                continue
            data = path.read_bytes()
            if path.parent.name == "done":
                marker = json.loads(data)
                marker.pop("peak_memory_bytes")
                marker.pop("out", None)
                data = json.dumps(marker).encode()
            found[f"{link.name}/{path.relative_to(link.resolve())}"] = data
    return found


def test_killed_in_every_stage_and_started_again_gives_the_same_bytes(
    small_config, small_pipeline, ray_address
):
    finish(small_config, ray_address)
    store = Path(small_pipeline.store)
    expected = contents(store)
    store.rename(store.with_name("uninterrupted"))
    folders = {s.stage.name: store / s.stage.name / s.fingerprint for s in plan_run(small_pipeline)}
    killed = []
    for name in folders:
        process = start(small_config, ray_address)
        folder = folders[name]
        wait_for(folder.exists, process)
        if name == "train":  # in the middle of it, not at its beginning
            wait_for((folder / "seed-0" / "checkpoint.safetensors").exists, process)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if not (folder / "manifest.json").exists():
            killed.append(name)
    finish(small_config, ray_address)
    # a stage may end within the moment it takes to kill: most must have been hit
    assert len(killed) >= 7, killed
    assert "train" in killed
    assert contents(store) == expected


def test_interrupting_ends_cleanly_and_the_lease_is_given_back(
    small_config, small_pipeline, ray_address
):
    process = start(small_config, ray_address)
    store = Path(small_pipeline.store)
    wait_for((store / "train").exists, process)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 130, output
    assert "finished work is kept" in output
    assert "Traceback" not in output
    assert not (store / "lease.json").exists()
    assert not list(store.rglob("*.tmp"))
    finish(small_config, ray_address)


def test_two_runs_on_one_store_do_not_meet(small_config, small_pipeline, ray_address):
    first = start(small_config, ray_address)
    store = Path(small_pipeline.store)
    wait_for((store / "lease.json").exists, first)
    second = start(small_config, ray_address)
    output, _ = second.communicate(timeout=120)
    assert second.returncode == 1
    assert f"in use by process {first.pid}" in output
    first.communicate(timeout=300)
    assert first.returncode == 0


def test_a_killed_training_worker_goes_on_from_its_checkpoint(
    small_config, small_pipeline, ray_address
):
    process = start(small_config, ray_address)
    store = Path(small_pipeline.store)
    wait_for(lambda: list(store.glob("train/*/seed-0/checkpoint.safetensors")), process)
    for worker in psutil.Process().children(recursive=True):  # of this session's Ray
        if "_run_shard" in worker.name():
            os.kill(worker.pid, signal.SIGKILL)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    resumed = [json.loads(p.read_text()) for p in store.glob("train/*/seed-0/training.json")]
    again = store.with_name("again")
    text = small_config.read_text().replace(str(store), str(again))
    small_config.write_text(text)
    finish(small_config, ray_address)
    whole = [json.loads(p.read_text()) for p in again.glob("train/*/seed-0/training.json")]
    assert resumed == whole
