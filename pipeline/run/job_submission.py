"""A pipeline file as a Ray job: what is copied to the cluster, and the command that runs there."""

from __future__ import annotations

import glob
import hashlib
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

import pipeline
from peg_core.errors import ConfigError
from peg_core.object_url import is_url
from pipeline.config.loading import dump_config, load_config
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.config.redaction import is_secret_name
from pipeline.run.run_log import RUN_ID
from workers.jobs.job import JobRequest

# Settings that name files, `*` being every item of a section or list. Relative ones mean this
# folder here, not its copy on the cluster.
LOCATIONS = (
    "store",
    "graph.edges",
    "graph.edges.*.files",
    "graph.nodes",
    "graph.nodes.*.files",
    "split.valid_edges",
    "split.test_edges",
    "split.valid_negatives",
    "split.test_negatives",
    "evaluate.on.edges",
    "evaluate.on.edges.*.files",
    "evaluate.on.nodes",
    "evaluate.on.nodes.*.files",
    "score.candidates",
    "recommend.nodes",
    "recommend.allowed.files",
    "recommend.exclude.files",
)
# Data are read where they are, and a copy of the folder may be read by all jobs.
EXCLUDES = (
    "data/", "runs/", ".venv/", ".git/", "__pycache__/", ".env",
    "*.parquet", "*.npy", "*.safetensors",
)  # fmt: skip
SET_BY_JOBS = (RUN_ID, "PYTHONUNBUFFERED")
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
        environment: Variables for the job.
        pip: Requirements that are installed for the job.
        image: Container image that the job runs in; it must hold the package, and no folder is
            copied: the configuration travels in the command.
        runtime_env_file: YAML or JSON with more keys of Ray's runtime environment.
        shared_paths: Local paths of the configuration mean the same on all nodes.
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
    pip: tuple[str, ...] = ()
    image: str | None = None
    runtime_env_file: Path | None = None
    shared_paths: bool = False

    def load(self) -> PipelineConfig:
        """The configuration, checked here before anything is sent."""
        config = load_config(self.config, self.overrides, cluster_file=self.cluster_file)
        if not self.shared_paths:
            require_shared(config)
        return config

    def job(self, config: PipelineConfig, *, submission_id: str | None = None) -> JobRequest:
        """The job, under the id of this submission unless another one is given."""
        folder = (self.working_dir or self.config.parent).absolute()
        submission_id = submission_id or self.submission_id(config)
        more = read_runtime_environment(self.runtime_env_file)
        variables = _variables(self.environment, more.pop("env_vars", {}))
        in_image = self.image is not None or "image_uri" in more
        request = JobRequest(
            submission_id=submission_id,
            entrypoint=self._command_in_image(config, submission_id)
            if in_image
            else shlex.join(self._command(config, folder)),
            # an image cannot have a copied folder: one that was asked for is refused with it
            working_dir=self.working_dir if in_image else folder,
            excludes=[*EXCLUDES, *_store_in(folder, config.store, self.base)],
            packages=package_folders() if self.with_package else (),
            environment={"PYTHONUNBUFFERED": "1", **variables, RUN_ID: submission_id},
            pip=self.pip,
            image=self.image,
            more=more,
            metadata={"pipeline": config.name, "mode": self.mode, "label": self.label or ""},
            driver_cpus=self.driver_cpus,
            driver_memory_bytes=self.driver_memory_bytes,
        )
        request.runtime_environment()  # refuses now what does not go together
        return request

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
        # the cluster file stays here
        settings = cluster_overrides(config) if self.cluster_file else []
        return self._run(str(file), config, [*self.overrides, *settings])

    def _command_in_image(self, config: PipelineConfig, submission_id: str) -> str:
        """Nothing is copied into a container: the shell writes the file, with all its settings."""
        file = f"/tmp/{submission_id}.yaml"
        command = shlex.join(self._run(file, config, []))
        return f"printf %s {shlex.quote(dump_config(config))} > {file} && {command}"

    def _run(self, file: str, config: PipelineConfig, overrides: Sequence[str]) -> list[str]:
        # the job joins the Ray that runs it
        chosen = [*overrides, "cluster.address=auto", *absolute_locations(config, self.base)]
        pairs = [part for item in chosen for part in ("--set", item)]
        refresh = ["--refresh"] if self.mode == "refresh" else []
        return ["python", "-m", "pipeline", "run", file, "--events", *refresh, *pairs]


def cluster_overrides(config: PipelineConfig) -> list[str]:
    """The section ``cluster`` as overrides, but for the address."""
    settings = config.cluster.model_dump(exclude={"address"})
    return [_override(f"cluster.{key}", value) for key, value in settings.items()]


def package_folders() -> list[Path]:
    """Where this installation's packages are."""
    root = Path(pipeline.__file__).parent.parent
    return [root / name for name in PACKAGES]


def local_locations(config: PipelineConfig) -> dict[str, str]:
    """Settings that name files of a file system, with their values."""
    values = (each for key in LOCATIONS for each in _values(config, key.split(".")))
    return {key: value for key, value in values if isinstance(value, str) and not is_url(value)}


def _values(value: Any, parts: Sequence[str], *above: str) -> Iterator[tuple[str, Any]]:
    """What a setting holds, by its full key; nothing where there is no such setting."""
    if not parts:
        yield ".".join(above), value
        return
    part, *rest = parts
    if part == "*":
        items = dict(enumerate(value)) if isinstance(value, list) else value
        for name, item in items.items() if isinstance(items, dict) else ():
            yield from _values(item, rest, *above, str(name))
    else:
        yield from _values(getattr(value, part, None), rest, *above, part)


def absolute_locations(config: PipelineConfig, base: Path) -> list[str]:
    """Overrides that make relative locations absolute."""
    return [
        _override(key, str((base / path).absolute()))
        for key, path in local_locations(config).items()
        if not Path(path).is_absolute()
    ]


def require_shared(config: PipelineConfig) -> None:
    """Refuse local paths that other machines can hardly see.

    Raises:
        ConfigError: Names all of them.
    """
    problems = []
    for key, path in local_locations(config).items():
        reason = _local_problem(key, path)
        if reason:
            problems.append(
                f"found local path {path} for `{key}` ({reason}), needed a URL or, with "
                "--shared-paths, a path that every node sees"
            )
    if problems:
        raise ConfigError("\n".join(problems))


def _local_problem(key: str, path: str) -> str:
    if not Path(path).is_absolute():
        return "it is relative to a folder of this machine"
    # a store is made by the first run, its folder is not
    is_there = Path(path).parent.exists() if key == "store" else bool(glob.glob(path))
    return "" if is_there else "not found here"


def _override(key: str, value: Any) -> str:
    """``KEY=VALUE`` that is read back as it is: quoted, without meaning for ``${``."""
    text = json.dumps(value)
    return f"{key}={text.replace('${', '$${')}"


def _store_in(folder: Path, store: str, base: Path) -> list[str]:
    """The store, as something not to copy, where it lies in the folder."""
    path = (base / store).absolute()
    inside = not is_url(store) and path.is_relative_to(folder) and path != folder
    return [f"/{path.relative_to(folder)}/"] if inside else []


def read_runtime_environment(file: Path | None) -> dict[str, Any]:
    """The keys of a YAML or JSON file; none without one."""
    if file is None:
        return {}
    try:
        values = yaml.safe_load(file.read_text())  # JSON is YAML too
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ConfigError(
            f"cannot read the runtime environment {file} ({' '.join(str(error).split())}); give a "
            "YAML or JSON file"
        ) from error
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise ConfigError(
            f"{file} holds no keys of a runtime environment; write for example `pip: [requests]`"
        )
    return values


def _variables(given: Mapping[str, str], in_file: object) -> dict[str, str]:
    """The variables of ``--env`` and of the file."""
    if not isinstance(in_file, dict):
        raise ConfigError("found `env_vars` that are no mapping; write `env_vars: {NAME: value}`")
    for name, value in in_file.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise ConfigError(f"found `env_vars: {name}` that is no text; put it in quotes")
        if name in given:
            raise ConfigError(f"found {name} in --env and in `env_vars`; leave one of them out")
    variables = {**in_file, **given}
    _check_environment(variables)
    return variables


def _check_environment(environment: Mapping[str, str]) -> None:
    secret = [name for name in environment if is_secret_name(name)]
    if secret:
        raise ConfigError(
            f"{', '.join(secret)} looks like a secret; a cluster keeps the environment of its jobs "
            "readable for everybody who reaches its dashboard: set it on the nodes instead"
        )
    if not environment:
        return
    from workers.cluster import THREAD_VARIABLES  # with all of Ray: late

    # Ray ends a job whose driver sets a variable again
    ours = [name for name in environment if name in (*SET_BY_JOBS, *THREAD_VARIABLES)]
    if ours:
        raise ConfigError(
            f"found {', '.join(ours)}, which every run sets itself (threads follow "
            "`cluster.cpus_per_worker`); leave it out"
        )
