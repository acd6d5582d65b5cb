"""Checks of a machine, a store and a cluster: what was found, and what to do."""

from __future__ import annotations

import importlib.metadata
import os
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil
from packaging.requirements import Requirement

from peg_core.errors import PegError
from peg_core.object_url import is_url
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.store.local_store import open_store
from workers.cluster import Cluster
from workers.jobs.job_client import JobClient
from workers.jobs.ray_token import TOKEN_PATH, read_token

State = Literal["ok", "warn", "fail"]
DISTRIBUTION = "peg-pipeline"
OLDEST_PYTHON = (3, 11)
FEW_BYTES, SOME_BYTES = 10**9, 10**10
FEW_FILES, SOME_FILES = 1024, 8192
# Ray keeps its objects in shared memory, 30% of the machine's unless told otherwise.
SHARED_SHARE = 0.3
SHARED_MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Check:
    """One finding.

    Args:
        advice: What to do, where the state is not ok.
    """

    name: str
    state: State
    found: str
    advice: str = ""


def run_checks(config: PipelineConfig | None, address: str | None) -> list[Check]:
    """All checks that make sense with what is given."""
    checks = [check_python(), *check_packages(), check_token()]
    checks += [
        check_file_limit(resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
        check_shared_memory(SHARED_MEMORY, psutil.virtual_memory().total),
        check_space("temporary files", Path(tempfile.gettempdir())),
    ]
    if config is not None:
        checks += check_store(config.store)
        checks.append(check_cluster(config))
    if address is not None:
        checks += check_job_server(address)
    return checks


def check_python() -> Check:
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < OLDEST_PYTHON:
        return Check("Python", "fail", found, "install Python 3.11 or newer")
    return Check("Python", "ok", found)


def check_packages() -> Iterator[Check]:
    """The installed versions against those that the package asks for."""
    try:
        wanted = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        yield Check(
            "packages", "warn", f"{DISTRIBUTION} is not installed", "run `pip install -e .`"
        )
        return
    problems = []
    for requirement in map(Requirement, wanted):
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        problem = _package_problem(requirement)
        problems += [problem] if problem else []
    if problems:
        yield Check("packages", "fail", "; ".join(problems), "install them again: `make install`")
    else:
        yield Check("packages", "ok", f"{len(wanted)} requirements read")
    yield Check("Ray", "ok", importlib.metadata.version("ray"))


def _package_problem(requirement: Requirement) -> str | None:
    try:
        version = importlib.metadata.version(requirement.name)
    except importlib.metadata.PackageNotFoundError:
        return f"{requirement.name} is missing"
    if requirement.specifier.contains(version, prereleases=True):
        return None
    return f"{requirement.name} is {version}, it must be {requirement.specifier}"


def check_token() -> Check:
    try:
        token = read_token()
    except PegError as error:
        found, _, advice = str(error).partition("; ")
        # Ray itself makes the default file for local runs, which nobody else can join
        return Check("token", "fail" if TOKEN_PATH in os.environ else "warn", found, advice)
    if token is None:
        return Check("token", "ok", "none; clusters with authentication will refuse access")
    mode = os.environ.get("RAY_AUTH_MODE")
    if mode != "token":
        found = f"found, but RAY_AUTH_MODE is {mode or 'not set'}"
        return Check("token", "warn", found, "set RAY_AUTH_MODE=token to join clusters with it")
    return Check("token", "ok", "found")


def check_file_limit(limit: int) -> Check:
    advice = "raise it: `ulimit -n 65536`, or LimitNOFILE= in the systemd unit"
    if limit == resource.RLIM_INFINITY or limit >= SOME_FILES:
        return Check("open files", "ok", str(limit))
    return Check("open files", "fail" if limit < FEW_FILES else "warn", str(limit), advice)


def check_shared_memory(folder: Path, memory_bytes: int) -> Check:
    if not folder.exists():
        found = f"{folder} does not exist"
        return Check("shared memory", "warn", found, "Ray uses the disk instead, which is slower")
    size = shutil.disk_usage(folder).total
    found = f"{size / 1e9:.1f} GB of {memory_bytes / 1e9:.1f} GB memory"
    if size < SHARED_SHARE * memory_bytes:
        advice = "start the container with --shm-size of 30% of its memory"
        return Check("shared memory", "warn", found, advice)
    return Check("shared memory", "ok", found)


def check_space(name: str, folder: Path) -> Check:
    """Free space where ``folder`` is or will be."""
    existing = nearest_existing(folder)
    free = shutil.disk_usage(existing).free
    found = f"{free / 1e9:.1f} GB free at {existing}"
    if free >= SOME_BYTES:
        return Check(name, "ok", found)
    return Check(name, "fail" if free < FEW_BYTES else "warn", found, "free space; see `peg gc`")


def nearest_existing(folder: Path) -> Path:
    """The folder itself, or the first one above it that exists."""
    folder = folder.absolute()
    return next(parent for parent in (folder, *folder.parents) if parent.exists())


def check_store(location: str) -> Iterator[Check]:
    """Whether the store can be reached and written to, and who is using it."""
    if not is_url(location):
        existing = nearest_existing(Path(location))
        if not os.access(existing, os.W_OK | os.X_OK):
            found = f"{existing} cannot be written to"
            yield Check("store", "fail", found, "check its permissions")
            return
        yield check_space("store", Path(location))
    yield _told("store lease", lambda: _lease_of(location))


def _lease_of(location: str) -> str:
    holder = open_store(location).holder()
    return "free" if holder is None else f"in use by process {holder['pid']} on {holder['host']}"


def check_cluster(config: PipelineConfig) -> Check:
    """The configured Ray answers, or this machine has room for a local one."""
    cluster = config.cluster
    if cluster.address is not None:
        address = cluster.address
        return _told("cluster", lambda: _listens(address))
    needed = cluster.workers * cluster.task_memory
    memory = psutil.virtual_memory().total
    found = f"a local Ray; tasks may use {needed / 1e9:.1f} of {memory / 1e9:.1f} GB"
    if needed > memory:
        advice = "lower `cluster.workers` or `cluster.task_memory`"
        return Check("cluster", "warn", found, advice)
    return Check("cluster", "ok", found)


def _listens(address: str) -> str:
    Cluster.require_listener(address)
    return f"{address} answers"


def check_job_server(address: str) -> Iterator[Check]:
    """Reachability, authentication and version of a cluster that takes jobs."""
    try:
        client = JobClient(address)
    except PegError as error:
        found, _, advice = str(error).partition("; ")
        yield Check("job server", "fail", found, advice)
        return
    yield Check("job server", "ok", f"{client.address} answers")
    if client.is_open:
        found = "none: anyone who reaches this port can run code"
        advice = "start Ray with RAY_AUTH_MODE=token, and close its ports to others"
        yield Check("authentication", "warn", found, advice)
    else:
        yield Check("authentication", "ok", "the token was accepted")
    here, there = importlib.metadata.version("ray"), client.ray_version
    if here == there:
        yield Check("Ray there", "ok", there)
    else:
        advice = f"install ray=={there} here, or {here} on all nodes"
        yield Check("Ray there", "fail", f"{there}, but {here} here", advice)


def _told(name: str, look: Callable[[], str]) -> Check:
    """What was found, or the error with its advice."""
    try:
        return Check(name, "ok", look())
    except PegError as error:
        found, _, advice = str(error).partition("; ")
        return Check(name, "fail", found, advice)
