import shlex
from pathlib import Path

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
    return [words[place + 1] for place, word in enumerate(words) if word == "--set"]


def test_the_command_means_the_same_files_as_here(config_file, tmp_path):
    submission = Submission(config_file, overrides=("train.epochs=3",), working_dir=Path())
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
    submission = Submission(config_file, cluster_file=cluster)
    there = load_config(config_file, overrides(submission.job(submission.load())))
    assert (there.cluster.workers, there.cluster.task_memory) == (7, 3 * 10**9)


def test_every_setting_that_names_files_is_known():
    """A new setting for a file must be made absolute too: they all say that they are files."""

    def files(model, prefix):
        for name, field in model.model_fields.items():
            if (field.description or "").startswith("Parquet"):
                yield f"{prefix}{name}"
            for kind in [field.annotation, *getattr(field.annotation, "__args__", ())]:
                if hasattr(kind, "model_fields"):
                    yield from files(kind, f"{prefix}{name}.")

    assert {*files(PipelineConfig, ""), "store"} == set(LOCATIONS)


def test_the_id_depends_on_configuration_label_and_mode(config_file):
    def name(**changes):
        submission = Submission(config_file, **changes)
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
    submission = Submission(config_file, mode="refresh")
    assert "--refresh" in submission.job(submission.load()).entrypoint


def test_data_and_the_store_stay_here(config_file):
    config = config_file.with_name("near.yaml")
    config.write_text(SETTINGS.replace("runs/a store", "configs/kept"))
    submission = Submission(config)
    job = submission.job(submission.load())
    assert "/kept/" in job.excludes
    assert {"data/", "runs/", ".venv/", ".git/", "*.parquet", ".env"} <= set(job.excludes)


def test_a_file_outside_the_copied_folder_is_refused(config_file, tmp_path):
    (tmp_path / "other").mkdir()
    submission = Submission(config_file, working_dir=tmp_path / "other")
    with pytest.raises(ConfigError, match="not inside"):
        submission.job(submission.load())


def test_a_secret_in_the_environment_of_a_job_is_refused(config_file):
    submission = Submission(config_file, environment={"AWS_SECRET_ACCESS_KEY": "hidden"})
    with pytest.raises(ConfigError, match="set it on the nodes") as caught:
        submission.job(submission.load())
    assert "hidden" not in str(caught.value)
