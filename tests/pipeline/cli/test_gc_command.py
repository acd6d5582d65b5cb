"""Artifacts of real plans: their names and manifests matter here, their content does not."""

import dataclasses
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from peg_core.artifacts.manifest import Manifest
from peg_core.errors import ConfigError, PegError
from pipeline.cli.app import cli
from pipeline.config.loading import load_config
from pipeline.run.runner import plan_run
from pipeline.store.lease import Lease, StoreBusy
from pipeline.store.local_store import ArtifactStore


def peg(*arguments):
    return CliRunner().invoke(cli, [str(item) for item in arguments], catch_exceptions=False)


def fill(config_file, *overrides, day):
    """Make what a run of the file would leave: a folder with a manifest for every stage."""
    config = load_config(config_file, overrides)
    store = ArtifactStore(Path(config.store))
    made = []
    for step in plan_run(config):
        folder = store.prepare(step.stage.name, step.fingerprint, afresh=False).folder
        if Manifest.read(folder) is None:
            when = f"2026-01-{day:02}T00:00:00+00:00"
            (folder / "data.npy").write_bytes(bytes(1000))
            counts = {"nodes": 60, "edges": 200} if step.stage.name == "ingest" else {}
            done = Manifest(step.identity, step.fingerprint, when, when, 1.0, 1, counts)
            done.write(folder)
        made.append(folder)
    return made


def test_a_dry_run_lists_and_leaves_everything(small_config):
    old = fill(small_config, "train.lr=0.5", day=1)
    fill(small_config, day=2)
    shown = peg("gc", small_config, "--keep", "0")
    # training, embedding, calibration, evaluation, embed_all, scoring and the report depend on the
    # rate
    assert "7 of 19 artifacts" in shown.output
    assert "add --delete" in shown.output
    assert all(folder.exists() for folder in old)


def test_what_the_file_reaches_stays_and_the_rest_goes(small_config):
    old = fill(small_config, "train.lr=0.5", day=1)
    new = fill(small_config, day=2)
    assert peg("gc", small_config, "--keep", "0", "--delete").exit_code == 0
    assert all(folder.exists() for folder in new)
    gone = [folder.parent.name for folder in old if not folder.exists()]
    assert gone == ["train", "embed", "calibrate", "evaluate", "embed_all", "score", "report"]
    assert [step.action.value for step in plan_run(load_config(small_config))] == ["reuse"] * 12


def test_the_newest_of_each_stage_stay(small_config):
    oldest, older = (fill(small_config, f"train.lr=0.{n}", day=n) for n in (1, 2))
    newest = fill(small_config, "train.lr=0.3", day=3)
    other = small_config.with_name("other.yaml")
    other.write_text(small_config.read_text())
    peg("gc", other, "--keep", "2", "--delete")
    assert all(folder.exists() for folder in [*older, *newest])
    assert not oldest[4].exists()


def test_schedules_reach_too(small_config):
    kept = fill(small_config, "train.lr=0.5", day=1)
    peg("schedule", "add", small_config, "--every", "1h", "--set", "train.lr=0.5")
    fill(small_config, day=2)
    peg("gc", small_config, "--keep", "0", "--delete")
    assert all(folder.exists() for folder in kept)


def test_what_the_last_run_used_stays_and_so_does_unfinished_work_that_is_reached(small_config):
    config = load_config(small_config, ["train.lr=0.5"])
    store = ArtifactStore(Path(config.store))
    current = fill(small_config, "train.lr=0.5", day=1)
    store.point_current("train", current[4].name)
    begun = store.prepare(
        "train", plan_run(load_config(small_config))[4].fingerprint, afresh=False
    ).folder
    dropped = store.prepare("train", "0123456789abcdef", afresh=False).folder
    peg("gc", small_config, "--keep", "0", "--delete")
    assert current[4].exists()
    assert begun.exists()
    assert not dropped.exists()


def test_nothing_is_removed_while_a_run_has_the_store(small_config):
    old = fill(small_config, "train.lr=0.5", day=1)
    with Lease(Path(load_config(small_config).store)), pytest.raises(StoreBusy):
        peg("gc", small_config, "--keep", "0", "--delete")
    assert all(folder.exists() for folder in old)


def test_an_input_that_is_away_ends_the_cleaning(small_config):
    """Without it nobody knows which artifacts are reached."""
    old = fill(small_config, "train.lr=0.5", day=1)
    (small_config.parent / "edges.parquet").rename(small_config.parent / "away.parquet")
    with pytest.raises(PegError, match="no Parquet file"):
        peg("gc", small_config, "--keep", "0", "--delete")
    assert all(folder.exists() for folder in old)


def test_a_store_without_any_root_is_refused(small_config):
    fill(small_config, day=1)
    with pytest.raises(ConfigError, match="everything old would go"):
        peg("gc", "--store", load_config(small_config).store, "--delete")
    settings = yaml.safe_load(small_config.read_text())
    second = small_config.with_name("second.yaml")
    second.write_text(yaml.safe_dump({**settings, "store": "elsewhere"}))
    with pytest.raises(ConfigError, match="needed is one"):
        peg("gc", small_config, second)


def test_manifests_keep_their_metrics(tmp_path, small_config):
    [folder, *_] = fill(small_config, day=1)
    manifest = Manifest.read(folder)
    dataclasses.replace(manifest, metrics={"rows": 3}).write(folder)
    assert Manifest.read(folder).metrics == {"rows": 3}
