"""The files under configs/ are what the code reads and writes today."""

import copy
import json
import re
from pathlib import Path

import pytest
import yaml

from peg_core.errors import ConfigError
from pipeline.config.loading import load_config
from pipeline.run.job_submission import local_locations

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


def ray_jobs():
    """The configuration and the specification of the RayJob in every file."""
    for file in sorted((CONFIGS / "deploy").glob("*.yaml")):
        objects = list(yaml.safe_load_all(file.read_text()))
        [settings] = [item for item in objects if item["kind"] == "ConfigMap"]
        last, data = objects[-1], settings["data"]
        if last["kind"] == "CronJob":
            specification = json.loads(data["rayjob.json"])["spec"]
        elif last["kind"] == "RayCronJob":
            specification = last["spec"]["jobTemplate"]
        else:
            specification = last["spec"]
        yield pytest.param(data["pipeline.yaml"], specification, id=file.stem)


@pytest.mark.parametrize(("text", "job"), ray_jobs())
def test_ray_jobs_keep_their_work_off_the_cluster_and_share_no_disk(text, job, tmp_path):
    file = tmp_path / "pipeline.yaml"
    file.write_text(text)
    config = load_config(file)
    assert config.store.startswith("s3://")
    assert local_locations(config) == {}
    cluster = job["rayClusterSpec"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        spec = group["template"]["spec"]
        volumes = {volume.pop("name"): volume for volume in copy.deepcopy(spec["volumes"])}
        assert not [name for name, kind in volumes.items() if "persistentVolumeClaim" in kind]
        [container] = spec["containers"]
        [cache] = [item["value"] for item in container["env"] if item["name"] == "PEG_CACHE_DIR"]
        [mount] = [item for item in container["volumeMounts"] if item["mountPath"] == cache]
        assert volumes[mount["name"]] == {"emptyDir": {}}


@pytest.mark.parametrize(("text", "job"), ray_jobs())
def test_workers_come_and_go_with_the_tasks(text, job):
    cluster = job["rayClusterSpec"]
    assert cluster["enableInTreeAutoscaling"] is True
    # the head runs no tasks: one of the groups must always be there to ask for more
    assert cluster["headGroupSpec"]["rayStartParams"] == {"num-cpus": "0"}
    groups = cluster["workerGroupSpecs"]
    assert sum(group["minReplicas"] for group in groups) >= 1
    settings = yaml.safe_load(text)["cluster"]
    for group in groups:
        assert group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
        [container] = group["template"]["spec"]["containers"]
        # a restarted task must find a CPU beside the one that it replaces
        assert int(container["resources"]["limits"]["cpu"]) > settings["cpus_per_worker"]
    assert max(group["maxReplicas"] for group in groups) == settings["workers"]


def test_only_workers_that_may_have_a_gpu_wait_for_one():
    [(text, job)] = [item.values for item in ray_jobs() if item.id == "rayjob_gpu"]
    assert yaml.safe_load(text)["cluster"]["gpus_per_worker"] == 1
    with_gpu = {
        group["groupName"]: "tolerations" in group["template"]["spec"]
        for group in job["rayClusterSpec"]["workerGroupSpecs"]
        if "nvidia.com/gpu" in group["template"]["spec"]["containers"][0]["resources"]["limits"]
    }
    assert with_gpu == {"gpu-workers": True}


@pytest.mark.parametrize("name", ["Dockerfile", "Dockerfile.gpu"])
def test_images_install_torch_first_and_alone(name):
    text = (CONFIGS / "deploy" / name).read_text()
    installs = [line for line in text.replace("\\\n", " ").splitlines() if "pip install" in line]
    assert len(installs) == 2
    assert "^torch==" in installs[0]
    assert "constraints.txt ." in installs[1]
    # what the packages need is copied, and nothing that does not exist
    copied = [word for line in re.findall(r"^COPY (.*)", text, re.MULTILINE)
              for word in line.split()[:-1]]  # fmt: skip
    assert {"peg_core", "workers", "pipeline", "pyproject.toml"} <= set(copied)
    assert all((CONFIGS.parent / word).exists() for word in copied)


def test_the_gpu_image_and_its_torch_follow_one_argument():
    text = (CONFIGS / "deploy" / "Dockerfile.gpu").read_text()
    assert "FROM nvidia/cuda:${CUDA}" in text
    assert 'whl/cu$(echo "${CUDA}" | tr -d .)' in text
