"""What a refresh would do, from manifests alone."""

from pathlib import Path

import polars as pl
import pytest

from peg_core.artifacts.manifest import Manifest
from peg_core.atomic_file import write_json
from peg_core.errors import ConfigError, InputError
from pipeline.config.result_sections import RefreshConfig
from pipeline.run.plan import Action
from pipeline.run.refresh import artifacts_in_use, limits_passed, plan_refresh, run_refresh
from pipeline.run.runner import plan_run
from pipeline.store.local_store import ArtifactStore

RECIPE = {
    "graph": {},
    "features": {},
    "encodings": [{"kind": "le", "dimensions": 4}],
    "dimensions": [4],
    "feature_width": 4,
}


def finish(config, steps, until=None):
    """Leave what a run of the steps leaves, without the work."""
    store = ArtifactStore(Path(config.store))
    for step in steps:
        if step.action is Action.RUN:
            folder = store.prepare(step.stage.name, step.fingerprint, afresh=False).folder
            details = {"best_seed": 0} if step.stage.name == "train" else {}
            counts = {"nodes": 60, "edges": 200} if step.stage.name == "ingest" else {}
            Manifest(step.identity, step.fingerprint, "then", "now", 0.0, 0, counts, details).write(
                folder
            )
            if step.stage.name == "train":
                (folder / "seed-0").mkdir()
                write_json(folder / "seed-0" / "recipe.json", RECIPE)
        store.point_current(step.stage.name, step.fingerprint)
        if step.stage.name == until:
            return


def add_file(config, number):
    folder = Path(config.graph.edges)
    pl.DataFrame({"src": [0, 1], "dst": [50 + number, 200]}).write_parquet(
        folder / f"more-{number}.parquet"
    )


def by_name(steps):
    return {step.stage.name: step for step in steps}


def to_run(steps):
    return [step.stage.name for step in steps if step.action is Action.RUN]


@pytest.fixture
def trained(small_pipeline, tmp_path):
    """A pipeline that reads a folder of edges, and was run."""
    (tmp_path / "edges").mkdir()
    Path(small_pipeline.graph.edges).rename(tmp_path / "edges" / "first.parquet")
    graph = small_pipeline.graph.model_copy(update={"edges": str(tmp_path / "edges")})
    config = small_pipeline.model_copy(update={"graph": graph})
    finish(config, plan_run(config))
    return config


AFRESH = ["ingest", "features", "encode_all", "embed_all", "score", "drift"]


def test_new_edges_run_everything_but_the_training(trained):
    before = by_name(plan_run(trained))
    assert to_run(plan_refresh(trained)) == []
    add_file(trained, 1)
    steps = plan_refresh(trained)
    assert to_run(steps) == AFRESH
    for stage in ("split", "encode", "train", "embed", "calibrate"):
        assert by_name(steps)[stage].fingerprint == before[stage].fingerprint
    # of the trained model, and of no other
    assert by_name(steps)["features"].identity.inputs["train"] == before["train"].fingerprint


@pytest.mark.parametrize("stage", ["ingest", "encode_all", "embed_all", "score"])
def test_an_interrupted_refresh_compares_with_what_it_compared_with(trained, stage):
    add_file(trained, 1)
    steps = plan_refresh(trained)
    finish(trained, steps, until=stage)
    again = plan_refresh(trained)
    assert [step.fingerprint for step in again] == [step.fingerprint for step in steps]
    assert to_run(again) == AFRESH[AFRESH.index(stage) + 1 :]


def test_later_refreshes_still_compare_with_the_training(trained):
    before = by_name(plan_run(trained))
    add_file(trained, 1)
    finish(trained, first := plan_refresh(trained))
    assert to_run(plan_refresh(trained)) == []
    add_file(trained, 2)
    second = plan_refresh(trained)
    assert to_run(second) == AFRESH
    noted = by_name(second)["drift"].identity.settings["refresh"]
    for stage in ("ingest", "encode_all", "embed_all", "score"):
        assert noted["trained"][stage] == before[stage].fingerprint
        assert noted["last"][stage] == by_name(first)[stage].fingerprint
    finish(trained, second)
    used = artifacts_in_use(ArtifactStore(Path(trained.store)))
    assert {(stage, name) for stage, name in noted["trained"].items()} <= used
    assert ("train", before["train"].fingerprint) in used


def test_a_training_that_was_stopped_is_not_used(trained):
    before = by_name(plan_run(trained))
    add_file(trained, 1)
    finish(trained, plan_refresh(trained))
    finish(trained, plan_run(trained), until="train")
    assert by_name(plan_refresh(trained))["train"].fingerprint == before["train"].fingerprint
    finish(trained, plan_run(trained))
    assert to_run(plan_refresh(trained)) == []
    assert by_name(plan_refresh(trained))["train"].fingerprint != before["train"].fingerprint


def test_without_a_run_there_is_nothing_to_refresh(small_pipeline, display):
    with pytest.raises(InputError, match="run `peg run` once first"):
        run_refresh(small_pipeline, display)
    assert not Path(small_pipeline.store).exists()


@pytest.mark.parametrize(
    ("section", "values", "message"),
    [
        ("train", {"lr": 0.5}, r"train.lr 0.005 -> 0.5\); run `peg run` once first"),
        ("model", {"hidden": 16}, "model.hidden 8 -> 16"),
        ("graph", {"duplicates": "max"}, "graph.duplicates sum -> max"),
        ("score", {"graph": "train"}, "set `score.graph: all`"),
        ("features", {"kind": "learned"}, "features that new nodes have too"),
    ],
)
def test_another_model_is_not_kept(trained, display, section, values, message):
    part = getattr(trained, section).model_copy(update=values)
    with pytest.raises(ConfigError, match=message):
        run_refresh(trained.model_copy(update={section: part}), display)


DRIFT = {
    "movement": {"encodings": [{"relative_eta": 0.1}, {"relative_eta": 0.3}]},
    "score_shift": 0.2,
    "newest_edges": {"auc": 0.8},
}


@pytest.mark.parametrize(
    ("limits", "named"),
    [
        ({}, []),
        ({"max_movement": 0.2}, ["max_movement"]),
        ({"max_movement": 0.4}, []),
        ({"max_score_shift": 0.1}, ["max_score_shift"]),
        ({"min_new_edge_auc": 0.9, "max_movement": 0.2}, ["max_movement", "min_new_edge_auc"]),
        ({"max_score_shift": None, "min_new_edge_auc": 0.7}, []),
    ],
)
def test_limits_that_are_passed_are_named(limits, named):
    passed = limits_passed(DRIFT, RefreshConfig(**limits))
    assert [next(n for n in named if n in text) for text in passed] == named


def test_what_could_not_be_measured_passes_no_limit():
    drift = {**DRIFT, "score_shift": None, "newest_edges": {"auc": None}}
    limits = RefreshConfig(max_score_shift=0.01, min_new_edge_auc=0.99)
    assert limits_passed(drift, limits) == []
