"""A node of the cluster is lost, with all that runs on it; the run goes on and nothing differs."""

import json
import os
import secrets
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from rich.console import Console
from safetensors import safe_open

from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.progress import RunDisplay
from pipeline.run.runner import plan_run, run_pipeline
from pipeline.stages import STAGES

pytestmark = [pytest.mark.ray, pytest.mark.slow]

CHECKPOINT_EVERY = 5
# Timings, memory and when things happened differ from run to run; the report shows them.
NOT_COMPARED = {"manifest.json", "report.html", "progress.json"}


class TwoNodes:
    """A head that runs the driver, and one node that runs the tasks."""

    def __init__(self, node_class, launcher_class, folder):
        self._node_class, self._folder = node_class, folder
        self._token = secrets.token_hex(16)
        self.head = node_class(folder, self._token, cpus=0)
        environment = {**self.head.environment, "RAY_ADDRESS": self.head.address}
        self._launcher = launcher_class(folder, environment)
        self.head.wait_for_jobs()
        self.worker = self._start()

    def _start(self):
        return self._node_class(self._folder, self._token, head=self.head.address, cpus=2)

    def lose_worker(self):
        """The node goes at once; some time later another one joins."""
        self.worker.kill()
        self.worker = self._start()

    def run(self, config, store):
        settings = {"cluster.address": self.head.address, "store": store}
        overrides = [
            item for key, value in settings.items() for item in ("--set", f"{key}={value}")
        ]
        return self._launcher.start("run", config, *overrides)

    def close(self):
        self._launcher.close()
        self.worker.kill()
        self.head.kill()


@pytest.fixture(scope="module")
def two_nodes(ray_node_class, launcher_class):
    with tempfile.TemporaryDirectory(prefix="peg-ray-", dir="/tmp") as folder:
        nodes = TwoNodes(ray_node_class, launcher_class, Path(folder))
        yield nodes
        nodes.close()


@pytest.fixture(scope="module")
def uninterrupted(cluster, tmp_path_factory, small_inputs):
    """A pipeline with many small shards, run once without a loss: its file and its store."""
    folder = tmp_path_factory.mktemp("node-loss")
    settings = small_inputs(folder)
    pairs = np.random.default_rng(1).integers(0, 120, size=(4000, 2))
    candidates = pl.DataFrame({"src": pairs[:, 0], "dst": pairs[:, 1]})
    candidates.write_parquet(folder / "candidates.parquet", row_group_size=100)
    settings |= {
        "store": str(folder / "whole"),
        "split": {"folds": 8, "seed": 1},
        "encodings": [{"kind": "le", "dimensions": 4}, {"kind": "le", "dimensions": 6}],
        "train": {"epochs": 40, "patience": 40, "checkpoint_every": CHECKPOINT_EVERY},
        "cluster": {"workers": 2, "retries": 3},
    }
    settings["score"]["shard_rows"] = 100
    config = folder / "small.yaml"
    config.write_text(yaml.safe_dump(settings))
    run_pipeline(PipelineConfig(**settings), RunDisplay(Console(quiet=True)))
    return config, folder / "whole"


def copy_without(stages, whole, store):
    """A store that lacks these stages alone."""
    shutil.copytree(whole, store, symlinks=True)
    for name in stages:
        if (store / name).exists():  # not every stage takes part
            shutil.rmtree(store / name)
            (store / "current" / name).unlink()


def from_stage(stage):
    names = list(STAGES)
    return names[names.index(stage) :]


def contents(store):
    """Every file of every artifact, by stage and name; markers without their measurements."""
    found = {}
    for link in (store / "current").iterdir():
        for path in sorted(link.resolve().rglob("*")):
            if path.is_dir() or path.name in NOT_COMPARED:
                continue
            data = path.read_bytes()
            if path.parent.name == "done":
                marker = json.loads(data)
                for key in ("peak_memory_bytes", "out"):
                    marker.pop(key, None)
                data = json.dumps(marker).encode()
            found[f"{link.name}/{path.relative_to(link.resolve())}"] = data
    return found


def lose_node_during(stages, sign, two_nodes, uninterrupted, tmp_path):
    """Run the stages; the node goes when the first of them shows its first sign.

    Returns:
        The store, the folder of the stage and the epochs that were trained after the loss.
    """
    config, whole = uninterrupted
    store = tmp_path / "store"
    copy_without(stages, whole, store)
    stage = stages[0]
    settings = PipelineConfig(**{**yaml.safe_load(config.read_text()), "store": str(store)})
    [step] = [step for step in plan_run(settings) if step.stage.name == stage]
    folder = store / stage / step.fingerprint
    process = two_nodes.run(config, store)
    while not list(folder.glob(sign)):
        assert process.poll() is None, process.output
        time.sleep(0.002)
    two_nodes.lose_worker()
    saved, lost = saved_epoch(folder), progress_written(folder)
    assert not (folder / "manifest.json").exists(), "the stage was done before the node was lost"
    epochs = []
    while process.poll() is None:
        if progress_written(folder) != lost:
            epochs += validated_epochs(folder)
        time.sleep(0.01)
    assert process.returncode == 0, process.output
    return store, folder, (saved, epochs)


def progress_written(folder):
    """When the training last told of its progress: what it told before the loss is not new."""
    return [file.stat().st_mtime_ns for file in folder.glob("*/progress.json")]


def validated_epochs(folder):
    """The last epoch that each training told of; -1 before the first."""
    found = [json.loads(file.read_text()) for file in folder.glob("*/progress.json")]
    return [progress["last"].get("epoch", -1) for progress in found]


def saved_epoch(folder):
    """The epochs of the last checkpoint, where there is one."""
    for file in folder.glob("seed-0/checkpoint.safetensors"):
        with safe_open(file, framework="np") as opened:
            return json.loads(opened.metadata()["state"])["epoch"]
    return 0


@pytest.mark.parametrize("stage", ["encode", "score"])
def test_a_node_lost_in_a_stage_of_shards_changes_no_byte(
    stage, two_nodes, uninterrupted, tmp_path
):
    store, _, _ = lose_node_during([stage], "done/*.json", two_nodes, uninterrupted, tmp_path)
    assert contents(store) == contents(uninterrupted[1])


def test_a_node_lost_in_training_costs_at_most_the_epochs_since_the_checkpoint(
    two_nodes, uninterrupted, tmp_path
):
    """All stages after the training follow on the node that joined."""
    store, folder, (saved, epochs) = lose_node_during(
        from_stage("train"), "seed-0/checkpoint.safetensors", two_nodes, uninterrupted, tmp_path
    )
    assert saved >= CHECKPOINT_EVERY
    assert min(epochs) >= saved - 1  # epochs count from 0
    assert json.loads((folder / "manifest.json").read_text())["metrics"]["retries"] >= 1
    resumed, whole = (
        json.loads(next(folder.glob("train/*/seed-0/training.json")).read_text())
        for folder in (store, uninterrupted[1])
    )
    assert [row["epoch"] for row in resumed["history"]] == [
        row["epoch"] for row in whole["history"]
    ]
    for name in ("loss", "valid_auc"):
        mine, theirs = ([row[name] for row in run["history"]] for run in (resumed, whole))
        np.testing.assert_allclose(mine, theirs, rtol=1e-3)
    assert os.path.exists(store / "current" / "score")
