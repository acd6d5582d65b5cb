"""A job on a Ray cluster: what is requested, and how it turned out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workers.jobs.runtime_environment import merge_environment

FINISHED = frozenset({"SUCCEEDED", "FAILED", "STOPPED"})
STOPPED_EXIT_CODE = 130


@dataclass(frozen=True)
class JobRequest:
    """A command to run on the head node of a cluster.

    Args:
        working_dir: Folder that is copied to the cluster; the command runs in the copy. None: an
            image has all that is needed.
        excludes: What is not copied, in the syntax of ``.gitignore``.
        packages: Python packages that are copied too.
        environment: Variables; the cluster stores them in plain text, so no secrets.
        pip: Requirements that are installed for the job.
        image: Container image that the job runs in.
        more: Other keys of Ray's runtime environment.
        driver_cpus: CPUs set aside for the command itself, which only waits for tasks.
    """

    submission_id: str
    entrypoint: str
    working_dir: Path | None
    excludes: Sequence[str] = ()
    packages: Sequence[Path] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    pip: Sequence[str] = ()
    image: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    driver_cpus: float = 0
    driver_memory_bytes: int | None = None

    def runtime_environment(self) -> dict[str, Any]:
        """What Ray prepares before the command runs.

        Raises:
            ConfigError: Two of the settings cannot be had together.
        """
        ours: dict[str, Any] = {"env_vars": dict(self.environment)}
        if self.working_dir is not None:
            ours["working_dir"] = str(self.working_dir)
            ours["excludes"] = list(self.excludes)
        if self.packages:
            ours["py_modules"] = [str(package) for package in self.packages]
        if self.pip:
            ours["pip"] = list(self.pip)
        if self.image is not None:
            ours["image_uri"] = self.image
        return merge_environment(ours, self.more)


@dataclass(frozen=True)
class JobState:
    """What a cluster reports about a job; times in seconds since 1970."""

    submission_id: str
    status: str
    message: str
    entrypoint: str
    started: float | None
    finished: float | None
    driver_exit_code: int | None
    metadata: dict[str, str]

    @property
    def is_finished(self) -> bool:
        return self.status in FINISHED

    @property
    def exit_code(self) -> int:
        """That of the command; 130 for a job that was stopped."""
        if self.status == "STOPPED":
            return STOPPED_EXIT_CODE
        return 0 if self.status == "SUCCEEDED" else self.driver_exit_code or 1
