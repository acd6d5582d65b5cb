"""A schedule as objects of Kubernetes: a CronJob that applies a RayJob, or a RayCronJob."""

from __future__ import annotations

import importlib.metadata
import json
import math
import re
import shlex
from pathlib import Path
from typing import Any

import yaml

from peg_core.errors import ConfigError
from peg_core.object_url import is_url
from pipeline.config.loading import load_config
from pipeline.config.pipeline_config import ClusterConfig, PipelineConfig
from pipeline.run.job_submission import (
    cluster_overrides,
    local_locations,
    read_runtime_environment,
)
from pipeline.schedule.schedule import Schedule

Manifest = dict[str, Any]
CONFIG_FOLDER = "/etc/peg"
# A claim that all pods can mount, where the store or the inputs are in a folder.
DATA_FOLDER = "/data"
DATA_CLAIM = "peg-data"
# Artifacts of an object store, on the disk of each pod's machine.
CACHE_FOLDER = "/cache"
# Credentials of the object store, as variables; there need not be any.
STORE_SECRET = "peg-store"
IDLE_SECONDS = 300
GPU = "nvidia.com/gpu"
KUBECTL_IMAGE = "alpine/k8s:1.32.4"
NAME_MARK = "NAME-OF-THE-RUN"
# Waits: a CronJob that forbids overlap looks at its pod, not at the RayJob.
APPLY = f"""set -eu
name="$PREFIX-$(date -u +%Y%m%d%H%M%S)"
sed 's/"name": "{NAME_MARK}"/"name": "'"$name"'"/' {CONFIG_FOLDER}/rayjob.json | kubectl create -f -
while true; do
  state=$(kubectl get rayjob "$name" \\
    -o jsonpath='{{.status.jobStatus}}/{{.status.jobDeploymentStatus}}')
  case "$state" in
    SUCCEEDED/*) exit 0 ;;
    FAILED/*|STOPPED/*|*/Failed) echo "$name: $state"; exit 1 ;;
  esac
  sleep 10
done
"""


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as they are, and nothing by reference: people read these files."""

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def cron_job_manifests(schedule: Schedule, cron: str, *, image: str, namespace: str
) -> list[Manifest]:  # fmt: skip
    """ConfigMap, permissions and the CronJob."""
    meta = {"name": object_name(schedule), "namespace": namespace}
    ray_job = ray_job_manifest(schedule, NAME_MARK, image=image, namespace=namespace)
    config = _config_map(schedule, namespace)
    config["data"]["rayjob.json"] = json.dumps(ray_job, indent=2)
    return [config, *_permissions(meta), _cron_job(schedule, cron, meta)]


def _permissions(meta: dict[str, str]) -> list[Manifest]:
    """An account that may create RayJobs and look at them."""
    name = meta["name"]
    rules = [{"apiGroups": ["ray.io"], "resources": ["rayjobs"], "verbs": ["create", "get"]}]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    account = {"kind": "ServiceAccount", "name": name, "namespace": meta["namespace"]}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": meta,
         "rules": rules},
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": meta,
         "roleRef": role, "subjects": [account]},
    ]  # fmt: skip


def _cron_job(schedule: Schedule, cron: str, meta: dict[str, str]) -> Manifest:
    """The CronJob, whose pod applies the RayJob of the ConfigMap and waits for it."""
    name = meta["name"]
    container = {
        "name": "apply",
        "image": KUBECTL_IMAGE,
        "command": ["/bin/sh", "-c", APPLY],
        "env": [{"name": "PREFIX", "value": name}],
        "volumeMounts": [{"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True}],
    }
    pod = {
        "serviceAccountName": name,
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": name}}],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": meta,
        "spec": {
            "schedule": cron,
            "timeZone": schedule.timezone,
            "concurrencyPolicy": "Replace" if schedule.overlap == "replace" else "Forbid",
            # how late a missed tick may still start
            "startingDeadlineSeconds": 60 if schedule.catch_up == "none" else 3600,
            "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 3,
            "jobTemplate": {"spec": {"backoffLimit": 0, "template": {"spec": pod}}},
        },
    }


def ray_cron_job_manifests(schedule: Schedule, cron: str, *, image: str, namespace: str
) -> list[Manifest]:  # fmt: skip
    """ConfigMap and the RayCronJob of KubeRay 1.6 and later."""
    if schedule.timezone != "UTC":
        raise ConfigError(
            f"a RayCronJob has no time zone, the schedule is in {schedule.timezone}; use `--kind "
            "kubernetes`, or a schedule in UTC"
        )
    meta = {"name": object_name(schedule), "namespace": namespace}
    spec = {"schedule": cron, "suspend": False, "jobTemplate": _ray_job_spec(schedule, image)}
    ray_cron_job = {
        "apiVersion": "ray.io/v1", "kind": "RayCronJob", "metadata": meta, "spec": spec,
    }  # fmt: skip
    return [_config_map(schedule, namespace), ray_cron_job]


def ray_job_manifest(schedule: Schedule, name: str, *, image: str, namespace: str) -> Manifest:
    """One run on a cluster of its own."""
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": _ray_job_spec(schedule, image),
    }


def object_name(schedule: Schedule) -> str:
    """The schedule's name as Kubernetes accepts it."""
    return "peg-" + re.sub(r"[^a-z0-9-]", "-", schedule.name.lower())[:40].strip("-")


def as_yaml(manifests: list[Manifest], heading: str) -> str:
    """All objects in one file, which opens with how to use it."""
    comment = "".join(f"# {line}".rstrip() + "\n" for line in heading.splitlines())
    return comment + yaml.dump_all(manifests, Dumper=_Dumper, sort_keys=False, width=1000)


def _config_map(schedule: Schedule, namespace: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": object_name(schedule), "namespace": namespace},
        "data": {"pipeline.yaml": Path(schedule.config).read_text(encoding="utf-8")},
    }


def needs_claim(schedule: Schedule) -> bool:
    """Whether the pipeline reads or writes a folder; an object store needs no shared disk."""
    return bool(local_locations(_config(schedule)))


def _config(schedule: Schedule) -> PipelineConfig:
    file = schedule.cluster_file
    return load_config(
        Path(schedule.config), schedule.overrides, cluster_file=Path(file) if file else None
    )


def _ray_job_spec(schedule: Schedule, image: str) -> Manifest:
    config = _config(schedule)
    if not is_url(config.store) and not config.store.startswith(f"{DATA_FOLDER}/"):
        raise ConfigError(
            f"the store {config.store} would be lost with its pod; set `store` to a URL, or to a "
            f"folder below {DATA_FOLDER}, where the claim {DATA_CLAIM} is mounted"
        )
    environment = _runtime_environment(schedule)
    return {
        "entrypoint": _entrypoint(schedule, config),
        **({"runtimeEnvYAML": environment} if environment else {}),
        "shutdownAfterJobFinishes": True,
        "ttlSecondsAfterFinished": 600,
        # every retry has a new cluster and continues from the store
        "backoffLimit": schedule.retries,
        "rayClusterSpec": {
            "rayVersion": importlib.metadata.version("ray"),
            "authOptions": {"mode": "token"},
            # as many workers as tasks wait for, and fewer when they idle
            "enableInTreeAutoscaling": True,
            "autoscalerOptions": {"idleTimeoutSeconds": IDLE_SECONDS},
            "headGroupSpec": {
                # tasks run on the workers: the head has the driver
                "rayStartParams": {"num-cpus": "0"},
                "template": _pod("ray-head", schedule, image, cpus=2, memory_bytes=4 * 2**30),
            },
            "workerGroupSpecs": [_worker_group(schedule, image, config.cluster)],
        },
    }


def _runtime_environment(schedule: Schedule) -> str:
    """Variables and packages of the job, in YAML; empty without any."""
    file = schedule.runtime_env_file
    found = read_runtime_environment(Path(file) if file else None)
    variables = {**found.pop("env_vars", {}), **schedule.environment}
    found |= {"env_vars": variables} if variables else {}
    found |= {"pip": list(schedule.pip)} if schedule.pip else {}
    return yaml.safe_dump(found, sort_keys=False) if found else ""


def _entrypoint(schedule: Schedule, config: PipelineConfig) -> str:
    """The command of a run, which joins the cluster of its RayJob."""
    command = ["python", "-m", "pipeline", "run", f"{CONFIG_FOLDER}/pipeline.yaml"]
    command += ["--refresh"] if schedule.mode == "refresh" else []
    settings = cluster_overrides(config) if schedule.cluster_file else []
    overrides = [*schedule.overrides, *settings, "cluster.address=auto"]
    command += [part for item in overrides for part in ("--set", item)]
    return shlex.join(command)


def _worker_group(schedule: Schedule, image: str, cluster: ClusterConfig) -> Manifest:
    return {
        "groupName": "workers",
        "replicas": 1,
        "minReplicas": 1,
        "maxReplicas": cluster.workers,
        "rayStartParams": {},
        "template": _pod(
            "ray-worker",
            schedule,
            image,
            # one more than a task takes: a restarted actor must not take its CPU
            cpus=cluster.cpus_per_worker + 1,
            memory_bytes=2 * cluster.task_memory,
            gpus=math.ceil(cluster.gpus_per_worker),
        ),
    }


def _pod(
    container: str, schedule: Schedule, image: str, *, cpus: int, memory_bytes: int, gpus: int = 0
) -> Manifest:
    limits = {"cpu": str(cpus), "memory": str(memory_bytes)}
    limits |= {GPU: str(gpus)} if gpus else {}
    mounts: list[Manifest] = [
        {"name": "config", "mountPath": CONFIG_FOLDER, "readOnly": True},
        {"name": "cache", "mountPath": CACHE_FOLDER},
    ]
    volumes: list[Manifest] = [
        {"name": "config", "configMap": {"name": object_name(schedule)}},
        {"name": "cache", "emptyDir": {}},
    ]
    if needs_claim(schedule):
        mounts.append({"name": "data", "mountPath": DATA_FOLDER})
        volumes.append({"name": "data", "persistentVolumeClaim": {"claimName": DATA_CLAIM}})
    spec: Manifest = {
        "containers": [
            {
                "name": container,
                "image": image,
                "env": [{"name": "PEG_CACHE_DIR", "value": CACHE_FOLDER}],
                "envFrom": [{"secretRef": {"name": STORE_SECRET, "optional": True}}],
                "resources": {"limits": limits, "requests": limits},
                "volumeMounts": mounts,
            }
        ],
        "volumes": volumes,
    }
    if gpus:  # machines with GPUs are usually kept for those who ask for one
        spec["tolerations"] = [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]
    return {"spec": spec}
