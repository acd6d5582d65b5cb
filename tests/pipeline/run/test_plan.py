import polars as pl
import pytest

from peg_core.artifacts.manifest import Manifest
from peg_core.errors import ConfigError, InputError
from pipeline.run.plan import Action, forced_stages, make_plan
from pipeline.stages import STAGES

EVERY_STAGE = [
    "ingest", "features", "split", "encode", "train", "embed", "calibrate", "evaluate",
    "encode_all", "embed_all", "score", "report",
]  # fmt: skip


class Artifacts:
    """Manifests in memory."""

    def __init__(self):
        self.done = {}

    def find(self, stage, fingerprint):
        return self.done.get((stage, fingerprint))

    def newest(self, stage):
        found = [m for (name, _), m in self.done.items() if name == stage]
        return found[-1] if found else None

    def plan(self, config, forced=()):
        return make_plan(STAGES.values(), config, find=self.find, newest=self.newest, forced=forced)

    def complete(self, config):
        for step in self.plan(config):
            self.done[step.stage.name, step.fingerprint] = Manifest(
                step.identity, step.fingerprint, "then", "now", 0.0, 0
            )


@pytest.fixture
def artifacts(small_pipeline):
    done = Artifacts()
    done.complete(small_pipeline)
    return done


def to_run(plan):
    return [step.stage.name for step in plan if step.action is Action.RUN]


def changed(config, section, **values):
    part = getattr(config, section).model_copy(update=values)
    return config.model_copy(update={section: part})


def test_everything_runs_the_first_time_and_nothing_the_second(small_pipeline, artifacts):
    first = Artifacts().plan(small_pipeline)
    assert to_run(first) == EVERY_STAGE
    assert {step.reason for step in first} == {"not done yet"}
    assert to_run(artifacts.plan(small_pipeline)) == []


@pytest.mark.parametrize(
    ("section", "values", "expected"),
    [
        (
            "train",
            {"lr": 0.5},
            ["train", "embed", "calibrate", "evaluate", "embed_all", "score", "report"],
        ),
        (
            "split",
            {"seed": 9},
            [s for s in EVERY_STAGE if s not in ("ingest", "features", "encode_all")],
        ),
        (
            "features",
            {"dimensions": 3},
            [
                "features",
                "train",
                "embed",
                "calibrate",
                "evaluate",
                "embed_all",
                "score",
                "report",
            ],
        ),
        ("evaluate", {"hits": [3]}, ["evaluate", "report"]),
        ("evaluate", {"protocol": ["heart"]}, ["negatives", "evaluate", "report"]),
        ("score", {"shard_rows": 50}, ["score", "report"]),
        ("cluster", {"workers": 7, "cpus_per_worker": 3}, []),
        ("train", {"checkpoint_every": 4}, ["report"]),
    ],
)
def test_a_changed_setting_reruns_its_stage_and_what_follows_and_nothing_before(
    small_pipeline, artifacts, section, values, expected
):
    assert to_run(artifacts.plan(changed(small_pipeline, section, **values))) == expected


def test_the_reason_names_the_setting(small_pipeline, artifacts):
    plan = artifacts.plan(changed(small_pipeline, "train", lr=0.5))
    reasons = {step.stage.name: step.reason for step in plan}
    assert reasons["train"] == "train.lr 0.005 -> 0.5"
    assert reasons["embed"] == "train changed"
    assert reasons["encode"] == "done on now"


def test_a_changed_file_reruns_everything_and_is_named(small_pipeline, artifacts):
    pl.DataFrame({"src": [1, 2], "dst": [2, 3]}).write_parquet(small_pipeline.graph.edges)
    plan = artifacts.plan(small_pipeline)
    assert to_run(plan) == EVERY_STAGE
    edges = small_pipeline.graph.edges
    assert plan[0].reason == f"{edges} changed: everything is read again"


def test_another_code_version_reruns(small_pipeline, artifacts, monkeypatch):
    from dataclasses import replace

    monkeypatch.setitem(STAGES, "score", replace(STAGES["score"], version=99))
    plan = artifacts.plan(small_pipeline)
    assert to_run(plan) == ["score", "report"]
    assert "version 4 -> 99" in plan[-2].reason


def test_without_candidates_nothing_is_scored(small_pipeline):
    config = small_pipeline.model_copy(update={"score": None})
    assert to_run(Artifacts().plan(config)) == [
        s for s in EVERY_STAGE if s not in ("encode_all", "embed_all", "score")
    ]


def test_force_runs_one_stage_and_from_all_that_follow(small_pipeline, artifacts):
    assert to_run(artifacts.plan(small_pipeline, {"encode"})) == ["encode"]
    forced = forced_stages(list(STAGES), start_from="evaluate", force=["ingest"])
    assert to_run(artifacts.plan(small_pipeline, forced)) == [
        "ingest",
        *EVERY_STAGE[EVERY_STAGE.index("evaluate") :],
    ]


def test_an_unknown_stage_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match=r"no stage 'trian'.*did you mean 'train'\?"):
        forced_stages(list(STAGES), start_from="trian", force=[])


def test_a_missing_input_file_is_told_before_anything_runs(small_pipeline):
    config = changed(small_pipeline, "graph", edges="nowhere.parquet")
    with pytest.raises(InputError, match=r"no Parquet file at nowhere.parquet"):
        Artifacts().plan(config)
