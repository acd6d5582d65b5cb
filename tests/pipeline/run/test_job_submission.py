import shlex
import subprocess
from pathlib import Path
from typing import get_args, get_origin

import pytest

from peg_core.errors import ConfigError
from pipeline.config.loading import load_config
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.job_submission import LOCATIONS, Submission

SETTINGS = """
name: tiny
store: runs/a store
graph: {edges: data/edges.parquet}
"""


@pytest.fixture
def config_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("configs").mkdir()
    file = Path("configs/tiny.yaml")
    file.write_text(SETTINGS)
    return file


def overrides(job):
    words = shlex.split(job.entrypoint)
    return [words[index + 1] for index, word in enumerate(words) if word == "--set"]


def test_the_command_means_the_same_files_as_here(config_file, tmp_path):
    submission = Submission(
        config_file, overrides=("train.epochs=3",), working_dir=Path(), shared_paths=True
    )
    here = submission.load()
    job = submission.job(here)
    assert shlex.split(job.entrypoint)[:5] == ["python", "-m", "pipeline", "run", str(config_file)]
    there = load_config(config_file, overrides(job))
    assert there.store == str(tmp_path / "runs" / "a store")
    assert there.graph.edges == str(tmp_path / "data" / "edges.parquet")
    assert there.cluster.address == "auto"
    assert there.train == here.train


def test_the_cluster_file_travels_in_the_command(config_file, tmp_path):
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text("cluster: {workers: 7, task_memory: 3GB}")
    submission = Submission(config_file, cluster_file=cluster, shared_paths=True)
    there = load_config(config_file, overrides(submission.job(submission.load())))
    assert (there.cluster.workers, there.cluster.task_memory) == (7, 3 * 10**9)


def test_every_setting_that_names_files_is_known():
    """A new setting for a file must be made absolute too: they all say that they are files."""

    def files(model, prefix):
        for name, field in model.model_fields.items():
            if (field.description or "").startswith("Parquet"):
                yield f"{prefix}{name}"
            yield from sections(field.annotation, f"{prefix}{name}.")

    def sections(kind, prefix):
        if hasattr(kind, "model_fields"):
            yield from files(kind, prefix)
        several = "*." if get_origin(kind) in (list, dict) else ""
        for part in get_args(kind):
            yield from sections(part, f"{prefix}{several}")

    assert {*files(PipelineConfig, ""), "store"} == set(LOCATIONS)


def test_the_id_depends_on_configuration_label_and_mode(config_file):
    def name(**changes):
        submission = Submission(config_file, shared_paths=True, **changes)
        return submission.submission_id(submission.load())

    assert name() == name()
    different = [
        name(),
        name(label="b"),
        name(mode="refresh"),
        name(overrides=("train.epochs=3",)),
    ]
    assert len(set(different)) == 4
    assert name(label="20260102T030405Z").startswith("tiny-20260102T030405Z-")
    with pytest.raises(ConfigError, match="give another one"):
        name(label="a b")


def test_refresh_is_passed_on(config_file):
    submission = Submission(config_file, mode="refresh", shared_paths=True)
    assert "--refresh" in submission.job(submission.load()).entrypoint


def test_data_and_the_store_stay_here(config_file):
    config = config_file.with_name("near.yaml")
    config.write_text(SETTINGS.replace("runs/a store", "configs/kept"))
    submission = Submission(config, shared_paths=True)
    job = submission.job(submission.load())
    assert "/kept/" in job.excludes
    assert {"data/", "runs/", ".venv/", ".git/", "*.parquet", ".env"} <= set(job.excludes)


def test_a_file_outside_the_copied_folder_is_refused(config_file, tmp_path):
    (tmp_path / "other").mkdir()
    submission = Submission(config_file, working_dir=tmp_path / "other", shared_paths=True)
    with pytest.raises(ConfigError, match="not inside"):
        submission.job(submission.load())


@pytest.mark.parametrize(
    ("name", "message"),
    [("AWS_SECRET_ACCESS_KEY", "set it on the nodes"), ("OMP_NUM_THREADS", "every run sets")],
)
def test_a_variable_that_a_job_cannot_have_is_refused(config_file, name, message):
    submission = Submission(config_file, environment={name: "hidden"}, shared_paths=True)
    with pytest.raises(ConfigError, match=message) as caught:
        submission.job(submission.load())
    assert "hidden" not in str(caught.value)


def test_paths_of_this_machine_are_refused_unless_all_nodes_share_them(config_file, tmp_path):
    with pytest.raises(ConfigError) as caught:
        Submission(config_file).load()
    lines = str(caught.value).splitlines()
    assert len(lines) == 2
    assert "found local path runs/a store for `store` (it is relative" in lines[0]
    assert "found local path data/edges.parquet for `graph.edges`" in lines[1]
    assert all("needed a URL or, with --shared-paths, a path that every node" in x for x in lines)

    there = (f"store={tmp_path}/new", f"graph.edges={tmp_path}/[ef]*.parquet")
    with pytest.raises(ConfigError, match=r"`graph.edges` \(not found here\)"):
        Submission(config_file, overrides=there).load()
    (tmp_path / "edges.parquet").touch()
    assert Submission(config_file, overrides=there).load().store == f"{tmp_path}/new"
    remote = ("store=s3://bucket/a", "graph.edges=gs://bucket/edges/")
    assert Submission(config_file, overrides=remote).load().store == "s3://bucket/a"


def test_the_runtime_environment_holds_what_was_asked_for(config_file, tmp_path):
    file = tmp_path / "environment.json"
    file.write_text('{"pip_packages_are": "below", "env_vars": {"A": "1"}}')
    submission = Submission(
        config_file, environment={"B": "2"}, pip=("tiny==1", "small"), with_package=True,
        runtime_env_file=file, shared_paths=True,
    )  # fmt: skip
    job = submission.job(submission.load(), submission_id="name")
    found = job.runtime_environment()
    assert found["pip"] == ["tiny==1", "small"]
    assert found["pip_packages_are"] == "below"
    assert found["env_vars"] == {
        "A": "1", "B": "2", "PYTHONUNBUFFERED": "1", "PEG_RUN_ID": "name",
    }  # fmt: skip
    assert found["working_dir"] == str(tmp_path / "configs")
    assert [Path(folder).name for folder in found["py_modules"]] == [
        "pipeline", "workers", "peg_core",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("working_dir: /elsewhere", {}, "found `working_dir` .* --working-dir sets it"),
        ("excludes: [a]", {}, "found `excludes`"),
        ("pip: [a]", {"pip": ("b",)}, "found `pip` .* --pip sets it"),
        ("image_uri: a", {"image": "b"}, "found `image_uri` .* --image sets it"),
        ("py_modules: [a]", {"with_package": True}, "found `py_modules` .* --with-package"),
        ("env_vars: {A: '1'}", {"environment": {"A": "2"}}, "found A in --env and in"),
        ("env_vars: {A: 1}", {}, "`env_vars: A` that is no text; put it in quotes"),
        ("env_vars: {OMP_NUM_THREADS: '1'}", {}, "found OMP_NUM_THREADS"),
        ("env_vars: {SOME_TOKEN: '1'}", {}, "SOME_TOKEN looks like a secret"),
        ("[a, b]", {}, "holds no keys"),
        ("a: {", {}, "give a YAML or JSON file"),
        ("image_uri: a", {"pip": ("b",)}, "found `pip` beside an image"),
        ("{}", {"image": "a", "working_dir": Path("configs")}, "found .*`working_dir` beside"),
    ],
)
def test_what_a_runtime_environment_cannot_hold_is_named(
    config_file, tmp_path, text, settings, message
):
    file = tmp_path / "environment.yaml"
    file.write_text(text)
    submission = Submission(config_file, runtime_env_file=file, shared_paths=True, **settings)
    with pytest.raises(ConfigError, match=message):
        submission.job(submission.load())


def test_a_container_writes_its_own_configuration(config_file, tmp_path):
    """The shell runs what a container would, with `echo` for `python`."""
    submission = Submission(config_file, image="registry/peg:1", shared_paths=True)
    here = submission.load()
    job = submission.job(here, submission_id=f"peg-test-{tmp_path.name}")
    assert set(job.runtime_environment()) == {"env_vars", "image_uri"}
    told = subprocess.run(
        ["/bin/sh", "-c", job.entrypoint.replace("&& python", "&& echo")],
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    file = Path(told[told.index("run") + 1])
    try:
        there = load_config(file, overrides(job))
    finally:
        file.unlink()
    assert there.store == str(tmp_path / "runs" / "a store")
    assert there.model_copy(update={"store": "", "graph": None, "cluster": None}) == (
        here.model_copy(update={"store": "", "graph": None, "cluster": None})
    )
