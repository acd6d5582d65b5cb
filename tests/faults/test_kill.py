"""A run that is killed, in any stage, goes on as if nothing had happened."""

import json
import os
import shutil
import signal
import time
from pathlib import Path

import psutil
import pytest
import yaml
from rich.console import Console

from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.progress import RunDisplay
from pipeline.run.runner import plan_run, run_pipeline
from pipeline.stages import STAGES

pytestmark = [pytest.mark.ray, pytest.mark.slow]

# Timings and memory differ from run to run; the report shows them.
NOT_COMPARED = {"manifest.json", "report.html", "progress.json"}


@pytest.fixture(scope="module")
def settings(tmp_path_factory, small_inputs):
    """Of the small pipeline; its inputs serve every test of this file."""
    return small_inputs(tmp_path_factory.mktemp("killed"))


@pytest.fixture(scope="module")
def uninterrupted(cluster, settings):
    """The store of a run that nobody disturbed."""
    run_pipeline(PipelineConfig(**settings), RunDisplay(Console(quiet=True)))
    return Path(settings["store"])


@pytest.fixture
def pipeline(settings, tmp_path):
    """The same pipeline on a store of its own, empty."""
    return PipelineConfig(**{**settings, "store": str(tmp_path / "store")})


@pytest.fixture
def start(ray_address, start_peg, pipeline, settings, tmp_path):
    """Starts the pipeline in a process of its own."""
    file = tmp_path / "small.yaml"
    file.write_text(yaml.safe_dump({**settings, "store": pipeline.store}))
    return lambda: start_peg("run", file, "--set", f"cluster.address={ray_address}")


def finish(process):
    assert process.wait() == 0, process.output


def wait_for(condition, process):
    while not condition():
        assert process.poll() is None, process.output
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


def copy_up_to(stage: str, whole: Path, store: Path) -> None:
    """A store that has all that comes before the stage."""
    shutil.copytree(whole, store, symlinks=True)
    names = list(STAGES)
    for name in names[names.index(stage) :]:
        if (store / name).exists():  # not every stage takes part
            shutil.rmtree(store / name)
            (store / "current" / name).unlink()


def test_killed_in_every_stage_and_started_again_gives_the_same_bytes(
    pipeline, uninterrupted, start
):
    store = Path(pipeline.store)
    folders = {s.stage.name: store / s.stage.name / s.fingerprint for s in plan_run(pipeline)}
    killed = []
    for name in folders:
        process = start()
        folder = folders[name]
        wait_for(folder.exists, process)
        if name == "train":  # in the middle of it, not at its beginning
            wait_for((folder / "seed-0" / "checkpoint.safetensors").exists, process)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if not (folder / "manifest.json").exists():
            killed.append(name)
    finish(start())
    # a stage may end within the moment it takes to kill: most must have been hit
    assert len(killed) >= 7, killed
    assert "train" in killed
    assert contents(store) == contents(uninterrupted)


def test_interrupting_ends_cleanly_and_the_lease_is_given_back(pipeline, start, cluster, display):
    process = start()
    store = Path(pipeline.store)
    wait_for((store / "train").exists, process)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=120) == 130, process.output
    assert "finished work is kept" in process.output
    assert "Traceback" not in process.output
    assert not (store / "lease.json").exists()
    assert not list(store.rglob("*.tmp"))
    manifests = run_pipeline(pipeline, display)
    assert "report" in manifests


def test_two_runs_on_one_store_do_not_meet(pipeline, uninterrupted, start):
    store = Path(pipeline.store)
    copy_up_to("train", uninterrupted, store)
    first = start()
    wait_for((store / "lease.json").exists, first)
    second = start()
    assert second.wait(timeout=120) == 1
    assert f"in use by process {first.pid}" in second.output
    finish(first)


def test_a_killed_training_worker_goes_on_from_its_checkpoint(pipeline, uninterrupted, start):
    store = Path(pipeline.store)
    copy_up_to("train", uninterrupted, store)
    process = start()
    wait_for(lambda: list(store.glob("train/*/seed-0/checkpoint.safetensors")), process)
    for worker in psutil.Process().children(recursive=True):  # of this session's Ray
        if "run_shard" in worker.name():
            os.kill(worker.pid, signal.SIGKILL)
    finish(process)
    resumed, whole = (
        [json.loads(p.read_text()) for p in folder.glob("train/*/seed-0/training.json")]
        for folder in (store, uninterrupted)
    )
    assert len(resumed) == 1
    assert resumed == whole
