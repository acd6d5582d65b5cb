"""A pipeline file as a Ray job: what is copied to the cluster, and the command that runs there."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pipeline
from peg_core.errors import ConfigError
from peg_core.object_url import is_url
from pipeline.config.loading import dump_config, load_config
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.config.redaction import is_secret_name
from pipeline.run.run_log import RUN_ID
from workers.jobs.job import JobRequest

MODES = ("run", "refresh")
# Settings that name files; relative ones mean this folder here, not its copy on the cluster.
LOCATIONS = (
    "store",
    "graph.edges",
    "graph.nodes",
    "split.valid_edges",
    "split.test_edges",
    "split.valid_negatives",
    "split.test_negatives",
    "evaluate.on.edges",
    "evaluate.on.nodes",
    "score.candidates",
    "recommend.nodes",
)
# Data are read from their own place, and a copy of the folder may be read by all jobs.
EXCLUDES = (
    "data/", "runs/", ".venv/", ".git/", "__pycache__/", ".env",
    "*.parquet", "*.npy", "*.safetensors",
)  # fmt: skip
PACKAGES = ("pipeline", "workers", "peg_core")
LABEL = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*$")


@dataclass(frozen=True)
class Submission:
    """What ``peg submit`` was asked for.

    Args:
        config: Pipeline file, inside ``working_dir``.
        overrides: ``KEY=VALUE`` items.
        working_dir: Folder copied to the cluster; none: that of the file.
        base: Where relative paths of the file begin.
        label: Tells this run from others of the same configuration; part of the id.
        mode: ``run``, or ``refresh`` to keep the trained model.
        with_package: Copy this installation's packages too.
    """

    config: Path
    overrides: tuple[str, ...] = ()
    working_dir: Path | None = None
    base: Path = Path()
    cluster_file: Path | None = None
    label: str | None = None
    mode: str = "run"
    with_package: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    driver_cpus: float = 0
    driver_memory_bytes: int | None = None

    def load(self) -> PipelineConfig:
        """The configuration, checked here before anything is sent."""
        return load_config(self.config, self.overrides, cluster_file=self.cluster_file)

    def job(self, config: PipelineConfig, *, submission_id: str | None = None) -> JobRequest:
        """The job, under the id of this submission unless another one is given."""
        folder = (self.working_dir or self.config.parent).absolute()
        submission_id = submission_id or self.submission_id(config)
        _check_environment(self.environment)
        return JobRequest(
            submission_id=submission_id,
            entrypoint=shlex.join(self._command(config, folder)),
            working_dir=folder,
            excludes=[*EXCLUDES, *_store_in(folder, config.store, self.base)],
            packages=package_folders() if self.with_package else (),
            environment={"PYTHONUNBUFFERED": "1", **self.environment, RUN_ID: submission_id},
            metadata={"pipeline": config.name, "mode": self.mode, "label": self.label or ""},
            driver_cpus=self.driver_cpus,
            driver_memory_bytes=self.driver_memory_bytes,
        )

    def submission_id(self, config: PipelineConfig) -> str:
        """``<pipeline>[-<label>]-<hash>``: always the same for one configuration and label."""
        if self.label is not None and not LABEL.match(self.label):
            raise ConfigError(
                f"the id {self.label!r} holds more than letters, digits, '.', '_' and '-'; "
                "give another one"
            )
        text = json.dumps([dump_config(config), self.label, self.mode])
        name = "-".join(filter(None, (config.name, self.label)))
        return f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    def _command(self, config: PipelineConfig, folder: Path) -> list[str]:
        try:
            file = self.config.absolute().relative_to(folder)
        except ValueError:
            raise ConfigError(
                f"{self.config} is not inside {folder}, the folder that is copied to the cluster; "
                "give a --working-dir that holds it"
            ) from None
        overrides = [
            *self.overrides,
            *_cluster(self, config),
            *absolute_locations(config, self.base),
        ]
        pairs = [part for item in overrides for part in ("--set", item)]
        refresh = ["--refresh"] if self.mode == "refresh" else []
        return ["python", "-m", "pipeline", "run", str(file), "--events", *refresh, *pairs]


def _cluster(submission: Submission, config: PipelineConfig) -> list[str]:
    """The cluster section as overrides; the job joins the Ray that runs it."""
    settings = config.cluster.model_dump(exclude={"address"}) if submission.cluster_file else {}
    return [*(_override(f"cluster.{key}", value) for key, value in settings.items()),
            "cluster.address=auto"]  # fmt: skip


def package_folders() -> list[Path]:
    """Where this installation's packages are."""
    root = Path(pipeline.__file__).parent.parent
    return [root / name for name in PACKAGES]


def absolute_locations(config: PipelineConfig, base: Path) -> list[str]:
    """Overrides that make relative locations absolute."""
    found = []
    for key in LOCATIONS:
        value: Any = config
        for part in key.split("."):
            value = getattr(value, part, None)
        if isinstance(value, str) and not is_url(value) and not Path(value).is_absolute():
            found.append(_override(key, str((base / value).absolute())))
    return found


def _override(key: str, value: Any) -> str:
    """``KEY=VALUE`` that is read back as it is: quoted, without meaning for ``${``."""
    text = json.dumps(value)
    return f"{key}={text.replace('${', '$${')}"


def _store_in(folder: Path, store: str, base: Path) -> list[str]:
    """The store, as something not to copy, where it lies in the folder."""
    path = (base / store).absolute()
    inside = not is_url(store) and path.is_relative_to(folder) and path != folder
    return [f"/{path.relative_to(folder)}/"] if inside else []


def _check_environment(environment: Mapping[str, str]) -> None:
    secret = [name for name in environment if is_secret_name(name)]
    if secret:
        raise ConfigError(
            f"{', '.join(secret)} looks like a secret; a cluster keeps the environment of its jobs "
            "readable for everybody who reaches its dashboard: set it on the nodes instead"
        )
