"""A schedule as files for a scheduler that is already in use."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from peg_core.atomic_file import atomic_path
from peg_core.errors import ConfigError
from pipeline.schedule.export.airflow_dag import airflow_dag
from pipeline.schedule.export.escaping import (
    crontab_command,
    require_text,
    systemd_path,
    systemd_word,
)
from pipeline.schedule.export.kubernetes_manifests import (
    DATA_CLAIM,
    DATA_FOLDER,
    STORE_SECRET,
    as_yaml,
    cron_job_manifests,
    needs_claim,
    object_name,
    ray_cron_job_manifests,
)
from pipeline.schedule.export.systemd_calendar import calendar_events
from pipeline.schedule.schedule import Schedule, command_words

NOW = "$(date -u +%Y%m%dT%H%M%SZ)"


def export_schedule(
    schedule: Schedule, kind: str, folder: Path, *, image: str, namespace: str
) -> list[Path]:
    """Write the files; returns their paths."""
    require_text(*command_words(schedule), schedule.folder, image, namespace)
    if kind in ("kubernetes", "kuberay"):
        files = EXPORTS_TO_KUBERNETES[kind](schedule, image, namespace)
    else:
        files = EXPORTS[kind](schedule)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        with atomic_path(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return [folder / name for name in files]


def five_fields(schedule: Schedule, kind: str) -> str:
    """The cron expression, where the other scheduler can read it."""
    if schedule.cron is None or len(schedule.cron.split()) != 5:
        raise ConfigError(
            f"{kind} needs a cron expression of five fields, the schedule {schedule.name} has "
            f"{schedule.when}; add it again with --cron and --replace"
        )
    return " ".join(schedule.cron.split())


def shell_command(schedule: Schedule) -> str:
    """What a shell runs at a tick; a cluster gets the time as the id of the job."""
    words = shlex.join(command_words(schedule))
    return f"{words} --id {NOW}" if schedule.address else words


def _cron(schedule: Schedule) -> dict[str, str]:
    cron = five_fields(schedule, "cron")
    command = f"cd {shlex.quote(schedule.folder)} && {shell_command(schedule)}"
    line = f"{cron} {crontab_command(command)}"
    zone = "" if schedule.timezone == "UTC" else (
        "# CRON_TZ is read by cronie; other crons use the time of the machine.\n"
    )  # fmt: skip
    text = (
        f"# (crontab -l; cat {schedule.name}.crontab) | crontab -\n"
        "# While a run is going it holds the store: the next one then ends with an error.\n"
        f"{zone}CRON_TZ={schedule.timezone}\n{line}\n"
    )
    return {f"{schedule.name}.crontab": text}


def _systemd(schedule: Schedule) -> dict[str, str]:
    if schedule.cron is not None:
        events = [f"OnCalendar={e}" for e in calendar_events(schedule.cron, schedule.timezone)]
    else:
        events = ["OnActiveSec=0", f"OnUnitActiveSec={schedule.every_seconds}s"]
    unit = f"peg-{schedule.name}"
    retry = "" if not schedule.retries else (
        f"Restart=on-failure\nRestartSec={schedule.retry_delay_seconds:g}s\n"
    )  # fmt: skip
    limits = f"StartLimitBurst={schedule.retries + 1}\nStartLimitIntervalSec=1d\n"
    service = (
        f"# cp {unit}.service {unit}.timer /etc/systemd/system/\n"
        f"# systemctl daemon-reload && systemctl enable --now {unit}.timer\n"
        "# A service that is still running is not started again: runs do not overlap.\n"
        f"[Unit]\nDescription=peg pipeline {schedule.name}\n{limits if retry else ''}\n"
        f"[Service]\nType=oneshot\nWorkingDirectory={systemd_path(schedule.folder)}\n"
        "# RAY_AUTH_TOKEN_PATH and the like, in a file of mode 0600\n"
        f"EnvironmentFile=-/etc/peg/{schedule.name}.env\n"
        f"ExecStart=/bin/sh -c {systemd_word(shell_command(schedule))}\n{retry}"
    )
    persistent = "false" if schedule.catch_up == "none" else "true"
    timer = (
        f"# systemctl enable --now {unit}.timer\n"
        f"[Unit]\nDescription=peg pipeline {schedule.name}, {schedule.when}\n\n"
        f"[Timer]\n{chr(10).join(events)}\nPersistent={persistent}\n\n"
        "[Install]\nWantedBy=timers.target\n"
    )
    return {f"{unit}.service": service, f"{unit}.timer": timer}


def _airflow(schedule: Schedule) -> dict[str, str]:
    cron = five_fields(schedule, "airflow")
    name = f"peg_{schedule.name.replace('-', '_').replace('.', '_')}.py"
    return {name: airflow_dag(schedule, cron, file=name)}


def _kubernetes(schedule: Schedule, image: str, namespace: str) -> dict[str, str]:
    cron = five_fields(schedule, "kubernetes")
    manifests = cron_job_manifests(schedule, cron, image=image, namespace=namespace)
    file = f"{object_name(schedule)}.yaml"
    heading = (
        f"kubectl apply -f {file}\n"
        "A CronJob whose pod creates a RayJob and waits for it: no two runs at a time.\n"
        f"Needs KubeRay 1.5.1 or newer (tokens).\n{_claim(schedule)}"
    )
    return {file: as_yaml(manifests, heading)}


def _kuberay(schedule: Schedule, image: str, namespace: str) -> dict[str, str]:
    cron = five_fields(schedule, "kuberay")
    manifests = ray_cron_job_manifests(schedule, cron, image=image, namespace=namespace)
    file = f"{object_name(schedule)}-raycronjob.yaml"
    heading = (
        f"kubectl apply -f {file}\n"
        "RayCronJob is alpha: KubeRay 1.6 or newer with the feature gate RayCronJob. It has no\n"
        "policy for overlap: a run that finds the store in use fails; see `--kind kubernetes`.\n"
        f"{_claim(schedule)}"
    )
    return {file: as_yaml(manifests, heading)}


def _claim(schedule: Schedule) -> str:
    """What the pods of the schedule need beside the cluster."""
    lines = [f"A Secret {STORE_SECRET} may hold the credentials of the object store as variables."]
    if needs_claim(schedule):
        lines.append(f"Paths below {DATA_FOLDER} are on the claim {DATA_CLAIM}, ReadWriteMany.")
    return "\n".join(lines)


EXPORTS: dict[str, Callable[[Schedule], dict[str, str]]] = {
    "cron": _cron,
    "systemd": _systemd,
    "airflow": _airflow,
}
EXPORTS_TO_KUBERNETES: dict[str, Callable[[Schedule, str, str], dict[str, str]]] = {
    "kubernetes": _kubernetes,
    "kuberay": _kuberay,
}
KINDS = ("cron", "systemd", "kubernetes", "kuberay", "airflow")
