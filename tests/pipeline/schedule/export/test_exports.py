"""Files for other schedulers, read back by what they are for, or by its documented fields."""

import importlib.util
import json
import shlex
import shutil
import subprocess
import sys
import types
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import yaml

from peg_core.errors import ConfigError
from pipeline.schedule.export.exports import export_schedule
from pipeline.schedule.export.systemd_calendar import calendar_events
from pipeline.schedule.schedule import Schedule

# Of ray-operator/apis/ray/v1 in KubeRay 1.6: a field that is not there would be refused.
RAY_JOB_FIELDS = {
    "entrypoint", "shutdownAfterJobFinishes", "ttlSecondsAfterFinished", "backoffLimit",
    "rayClusterSpec", "runtimeEnvYAML", "submissionMode", "activeDeadlineSeconds", "metadata",
    "clusterSelector", "suspend", "entrypointNumCpus", "entrypointNumGpus", "entrypointResources",
    "submitterPodTemplate", "submitterConfig", "jobId", "managedBy", "deletionStrategy",
}  # fmt: skip
RAY_CLUSTER_FIELDS = {
    "rayVersion", "authOptions", "headGroupSpec", "workerGroupSpecs", "enableInTreeAutoscaling",
    "autoscalerOptions", "headServiceAnnotations", "gcsFaultToleranceOptions", "suspend",
    "managedBy",
}  # fmt: skip
RAY_CRON_JOB_FIELDS = {"schedule", "jobTemplate", "suspend"}
CRON_JOB_FIELDS = {
    "schedule", "timeZone", "concurrencyPolicy", "startingDeadlineSeconds", "suspend",
    "successfulJobsHistoryLimit", "failedJobsHistoryLimit", "jobTemplate",
}  # fmt: skip


@pytest.fixture
def schedule(tmp_path):
    config = tmp_path / "tiny.yaml"
    config.write_text("name: tiny\nstore: /data/runs/tiny\ngraph: {edges: /data/edges.parquet}\n")
    return Schedule(
        name="Nightly.run",
        config=str(config),
        folder=str(tmp_path),
        cron="30 2 * * 1-5",
        overrides=("train.epochs=3", "graph.source=a b%"),
        retries=2,
        created=datetime(2026, 1, 1, tzinfo=UTC),
    )


def export(schedule, kind, folder):
    files = export_schedule(schedule, kind, folder / "out", image="peg:1", namespace="graphs")
    assert all(file.read_text().startswith("# ") for file in files)
    return files


def check_ray_job(spec):
    assert set(spec) <= RAY_JOB_FIELDS
    assert spec["shutdownAfterJobFinishes"] is True
    assert spec["backoffLimit"] == 2
    words = shlex.split(spec["entrypoint"])
    assert words[:5] == ["python", "-m", "pipeline", "run", "/etc/peg/pipeline.yaml"]
    assert words[-2:] == ["--set", "cluster.address=auto"]
    assert "graph.source=a b%" in words
    cluster = spec["rayClusterSpec"]
    assert set(cluster) <= RAY_CLUSTER_FIELDS
    assert cluster["authOptions"] == {"mode": "token"}
    assert {"rayStartParams", "template"} <= set(cluster["headGroupSpec"])
    [workers] = cluster["workerGroupSpecs"]
    assert {"groupName", "replicas", "minReplicas", "maxReplicas", "rayStartParams",
            "template"} <= set(workers)  # fmt: skip
    for group in (cluster["headGroupSpec"], workers):
        [container] = group["template"]["spec"]["containers"]
        volumes = {volume["name"] for volume in group["template"]["spec"]["volumes"]}
        assert container["image"] == "peg:1"
        assert {mount["name"] for mount in container["volumeMounts"]} == volumes


def test_kubernetes_has_a_cron_job_that_waits_for_a_ray_job(schedule, tmp_path):
    berlin = schedule.model_copy(update={"timezone": "Europe/Berlin"})
    [file] = export(berlin, "kubernetes", tmp_path)
    objects = {item["kind"]: item for item in yaml.safe_load_all(file.read_text())}
    assert set(objects) == {"ConfigMap", "ServiceAccount", "Role", "RoleBinding", "CronJob"}
    spec = objects["CronJob"]["spec"]
    assert set(spec) <= CRON_JOB_FIELDS
    assert (spec["schedule"], spec["timeZone"]) == ("30 2 * * 1-5", "Europe/Berlin")
    assert spec["concurrencyPolicy"] == "Forbid"
    pod = spec["jobTemplate"]["spec"]["template"]["spec"]
    script = pod["containers"][0]["command"][-1]
    checked = subprocess.run(["/bin/sh", "-n"], input=script, text=True, capture_output=True)
    assert checked.returncode == 0, checked.stderr
    data = objects["ConfigMap"]["data"]
    assert data["pipeline.yaml"] == Path(schedule.config).read_text()
    ray_job = json.loads(data["rayjob.json"])
    assert (ray_job["apiVersion"], ray_job["kind"]) == ("ray.io/v1", "RayJob")
    assert ray_job["metadata"]["name"] in script
    check_ray_job(ray_job["spec"])
    assert objects["Role"]["rules"][0]["resources"] == ["rayjobs"]
    assert {item["metadata"]["namespace"] for item in objects.values()} == {"graphs"}


def test_kuberay_has_a_ray_cron_job(schedule, tmp_path):
    [file] = export(schedule, "kuberay", tmp_path)
    _, found = yaml.safe_load_all(file.read_text())
    assert (found["apiVersion"], found["kind"]) == ("ray.io/v1", "RayCronJob")
    assert set(found["spec"]) <= RAY_CRON_JOB_FIELDS
    assert found["spec"]["schedule"] == "30 2 * * 1-5"
    check_ray_job(found["spec"]["jobTemplate"])
    with pytest.raises(ConfigError, match="has no time zone"):
        export(schedule.model_copy(update={"timezone": "Asia/Tokyo"}), "kuberay", tmp_path)


def test_pods_mount_a_claim_only_where_a_folder_is_read_or_written(schedule, tmp_path):
    def claims(folder, **changes):
        [file] = export(schedule.model_copy(update=changes), "kuberay", tmp_path / folder)
        *_, found = yaml.safe_load_all(file.read_text())
        groups = found["spec"]["jobTemplate"]["rayClusterSpec"]["workerGroupSpecs"]
        volumes = groups[0]["template"]["spec"]["volumes"]
        return [item["name"] for item in volumes], "peg-data" in file.read_text()

    assert claims("folders") == (["config", "cache", "data"], True)
    remote = ("store=s3://bucket/a", "graph.edges=s3://bucket/edges.parquet")
    assert claims("objects", overrides=remote) == (["config", "cache"], False)
    assert claims("mixed", overrides=remote[:1]) == (["config", "cache", "data"], True)


def test_the_job_of_kubernetes_has_what_the_schedule_asks_for(schedule, tmp_path):
    cluster, more = tmp_path / "cluster.yaml", tmp_path / "more.yaml"
    cluster.write_text("cluster: {workers: 7, cpus_per_worker: 5}")
    more.write_text("env_vars: {B: '2'}")
    [file] = export(
        schedule.model_copy(
            update={"cluster_file": str(cluster), "runtime_env_file": str(more),
                    "environment": {"A": "1"}, "pip": ("tiny==1",)}
        ),
        "kuberay", tmp_path,
    )  # fmt: skip
    *_, found = yaml.safe_load_all(file.read_text())
    job = found["spec"]["jobTemplate"]
    check_ray_job(job)
    assert yaml.safe_load(job["runtimeEnvYAML"]) == {
        "env_vars": {"A": "1", "B": "2"}, "pip": ["tiny==1"],
    }  # fmt: skip
    [workers] = job["rayClusterSpec"]["workerGroupSpecs"]
    [container] = workers["template"]["spec"]["containers"]
    assert (workers["maxReplicas"], container["resources"]["limits"]["cpu"]) == (7, "6")
    assert "cluster.workers=7" in shlex.split(job["entrypoint"])


def test_a_store_that_would_be_lost_with_its_pod_is_refused(schedule, tmp_path):
    here = schedule.model_copy(update={"overrides": ("store=runs/tiny",)})
    with pytest.raises(ConfigError, match="would be lost with its pod"):
        export(here, "kubernetes", tmp_path)


def test_cron_runs_the_command_in_its_folder(schedule, tmp_path):
    [file] = export(schedule, "cron", tmp_path)
    line = file.read_text().splitlines()[-1]
    assert line.startswith("30 2 * * 1-5 cd ")
    assert "%" not in line.replace("\\%", "")  # a bare one would end the command
    words = shlex.split(line.replace("\\%", "%"))
    assert words[words.index("-m") :] == [
        "-m", "pipeline", "run", schedule.config,
        "--set", "train.epochs=3", "--set", "graph.source=a b%",
    ]  # fmt: skip


def test_a_job_of_another_scheduler_has_the_time_in_its_id(schedule, tmp_path):
    remote = schedule.model_copy(update={"address": "http://head:8265", "mode": "refresh"})
    text = export(remote, "cron", tmp_path)[0].read_text().splitlines()[-1]
    assert " submit " in text
    assert "--refresh" in text
    assert text.endswith(r"--id $(date -u +\%Y\%m\%dT\%H\%M\%SZ)")


@pytest.mark.parametrize("kind", ["cron", "kubernetes", "kuberay", "airflow"])
def test_an_interval_is_refused_where_only_cron_is_known(schedule, tmp_path, kind):
    every = schedule.model_copy(update={"cron": None, "every_seconds": 5})
    with pytest.raises(ConfigError, match="five fields"):
        export(every, kind, tmp_path)


def test_units_of_systemd_are_accepted_by_systemd(schedule, tmp_path):
    service, timer = export(schedule, "systemd", tmp_path)
    assert "Persistent=true" in timer.read_text()
    assert f"WorkingDirectory={tmp_path}" in service.read_text()
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("no systemd-analyze: install systemd to check the units")
    done = subprocess.run([tool, "verify", service, timer], capture_output=True, text=True)
    complaints = [line for line in done.stderr.splitlines() if "peg-" in line]
    assert not complaints


@pytest.mark.parametrize(
    "cron",
    ["30 2 * * *", "*/20 8-17 * * 1-5", "0 0 1,15 * *", "15 3 * 1,6 *", "0 12 13 * 5", "0 6 * * 7"],
)
def test_calendar_events_of_systemd_mean_what_cron_means(cron):
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("no systemd-analyze: install systemd to compare with it")
    zone, base = "Europe/Berlin", datetime(2026, 5, 5, 4, tzinfo=UTC)
    schedule = Schedule(name="a", config="/c", folder="/", cron=cron, timezone=zone, created=base)
    found = set()
    for event in calendar_events(cron, zone):
        command = [tool, "calendar", f"--base-time={base:%Y-%m-%d %H:%M:%S} UTC",
                   "--iterations=12", event]  # fmt: skip
        done = subprocess.run(
            command, capture_output=True, text=True, check=True,
            env={"TZ": "UTC", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
        )  # fmt: skip
        for line in done.stdout.splitlines():
            label, _, rest = line.strip().partition(": ")
            if label in ("Next elapse", *(f"Iter. #{n}" for n in range(2, 13))):
                moment = datetime.strptime(rest, "%a %Y-%m-%d %H:%M:%S UTC")
                found.add(moment.replace(tzinfo=UTC))
    expected = [tick for tick, _ in zip(schedule.ticks(base, base + timedelta(days=4000)),
                                        range(10), strict=False)]  # fmt: skip
    assert sorted(found)[:10] == expected
    assert all(tick.astimezone(ZoneInfo(zone)).minute in (0, 15, 20, 30, 40) for tick in expected)


def test_airflow_reads_the_dag(schedule, tmp_path, monkeypatch):
    """With Airflow itself where it is installed, which is too large to install for a test.

    Otherwise with packages of its names that note how the DAG and its task are called.
    """
    [file] = export(
        schedule.model_copy(update={"address": "http://head:8265"}), "airflow", tmp_path
    )
    if importlib.util.find_spec("airflow") is None:
        calls = _stand_ins(monkeypatch)
        module = _import(file)
        [dag] = calls["dags"]
        assert dag["dag_id"] == "peg-Nightly.run"
        assert dag["schedule"] == "30 2 * * 1-5"
        assert dag["max_active_runs"] == 1
        assert dag["catchup"] is False
        assert dag["default_args"]["retries"] == 2
        assert dag["start_date"] == (2026, 1, 1, "UTC")
        [run] = calls["tasks"]
        ran = []
        monkeypatch.setattr(subprocess, "run", lambda *items, **named: ran.append((items, named)))
        run(ts_nodash="20260102T023000", ti=types.SimpleNamespace(try_number=2))
        [((command,), named)] = ran
        assert command[1:5] == ["-m", "pipeline", "submit", schedule.config]
        assert command[-2:] == ["--id", "20260102T023000-try2"]
        assert named == {"cwd": schedule.folder, "check": True}
    else:
        module = _import(file)
        assert module.dag.dag_id == "peg-Nightly.run"
        assert module.dag.max_active_runs == 1
        assert [task.task_id for task in module.dag.tasks] == ["run"]


def _import(file):
    spec = importlib.util.spec_from_file_location("exported_dag", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _stand_ins(monkeypatch):
    calls = {"dags": [], "tasks": []}

    class DAG:
        def __init__(self, **settings):
            calls["dags"].append(settings)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    def task(**_):
        def take(function):
            calls["tasks"].append(function)
            return lambda: None

        return take

    sdk = types.ModuleType("airflow.sdk")
    sdk.DAG, sdk.task = DAG, task
    pendulum = types.ModuleType("pendulum")
    pendulum.datetime = lambda year, month, day, *, tz: (year, month, day, tz)
    for name, module in (("airflow", types.ModuleType("airflow")), ("airflow.sdk", sdk),
                         ("pendulum", pendulum)):  # fmt: skip
        monkeypatch.setitem(sys.modules, name, module)
    return calls
