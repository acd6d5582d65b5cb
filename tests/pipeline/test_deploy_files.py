"""The files under configs/ are what the code reads and writes today."""

from pathlib import Path

import pytest
import yaml

from peg_core.errors import ConfigError
from pipeline.config.loading import load_config

CONFIGS = Path(__file__).parents[2] / "configs"
CLUSTERS = sorted((CONFIGS / "clusters").glob("*.yaml"))


@pytest.mark.parametrize("file", CLUSTERS, ids=lambda file: file.stem)
def test_cluster_files_replace_the_section(file):
    config = load_config(CONFIGS / "quickstart.yaml", cluster_file=file)
    written = yaml.safe_load(file.read_text())["cluster"]
    assert config.cluster.workers == written["workers"]
    plain = load_config(CONFIGS / "quickstart.yaml")
    assert config.model_copy(update={"cluster": plain.cluster}) == plain


@pytest.mark.parametrize(
    "file", [*CLUSTERS, *sorted((CONFIGS / "deploy").iterdir())], ids=lambda file: file.name
)
def test_files_open_with_the_command_that_uses_them(file):
    first = file.read_text().splitlines()[0]
    assert first.startswith(("# peg ", "# kubectl apply -f configs/deploy/", "# docker build "))


def test_an_override_comes_after_the_cluster_file():
    config = load_config(
        CONFIGS / "quickstart.yaml", ["cluster.workers=3"], cluster_file=CLUSTERS[0]
    )
    assert config.cluster.workers == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("workers: 3", "found workers, the file must hold the section `cluster:` and nothing"),
        ("cluster: {worker: 3}", r"bad.yaml:1: cluster.worker: unknown key 'worker'.*'workers'"),
        ("cluster: {workers: 3}\nname: x", "must hold the section `cluster:` and nothing else"),
        ("", "the file is empty"),
    ],
)
def test_mistakes_in_a_cluster_file_are_reported_with_their_line(tmp_path, text, message):
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_config(CONFIGS / "quickstart.yaml", cluster_file=file)


def test_ray_jobs_keep_their_work_off_the_cluster():
    for name, kind in (("rayjob", "RayJob"), ("raycronjob", "RayCronJob"), ("cronjob", "CronJob")):
        objects = list(yaml.safe_load_all((CONFIGS / "deploy" / f"{name}.yaml").read_text()))
        assert objects[-1]["kind"] == kind
        [config] = [item for item in objects if item["kind"] == "ConfigMap"]
        assert yaml.safe_load(config["data"]["pipeline.yaml"])["store"].startswith("/data/")
