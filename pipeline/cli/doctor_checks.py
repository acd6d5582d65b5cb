"""Checks of a machine, a store and a cluster: what was found, and what to do."""

from __future__ import annotations

import contextlib
import importlib.metadata
import ipaddress
import os
import resource
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
from packaging.requirements import Requirement

from peg_core.errors import PegError
from peg_core.object_url import is_url
from pipeline.cli.doctor.check import Check, failed, space_state, told
from pipeline.cli.doctor.cluster_look import Findings, look_at_cluster
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.store.local_store import open_store
from workers.cluster_settings import ClusterSettings
from workers.jobs.job_client import JobClient
from workers.jobs.ray_token import TOKEN_PATH, read_token
from workers.ray_nodes.node_report import nearest_existing

DISTRIBUTION = "peg-pipeline"
OLDEST_PYTHON = (3, 11)
FEW_FILES, SOME_FILES = 1024, 8192
# Ray keeps its objects in shared memory, 30% of the machine's unless told otherwise.
SHARED_SHARE = 0.3
SHARED_MEMORY = Path("/dev/shm")
RAY_DAEMONS = frozenset({"gcs_server", "raylet"})
FEW_PORTS = 4
# In a cluster file: the Ray of the machine that the job runs on.
JOB_RAY = "auto"


def run_checks(config: PipelineConfig | None, address: str | None) -> Findings:
    """All checks that make sense with what is given.

    Args:
        address: A job server, or the address of a Ray to join instead of the configured one.
    """
    checks = [check_python(), *check_packages(), check_token()]
    checks += [
        check_file_limit(resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
        check_shared_memory(SHARED_MEMORY, psutil.virtual_memory().total),
        check_space("temporary files", Path(tempfile.gettempdir())),
        check_ports(ray_listeners()),
    ]
    job_server = address if address and is_job_server(address) else None
    settings = config.cluster.settings() if config else ClusterSettings()
    if job_server is None and address:
        settings = replace(settings, address=address)
    if config is not None:
        checks += check_store(config.store)
    answers = []
    if settings.address is not None and not (job_server and settings.address == JOB_RAY):
        look = look_at_cluster(settings, config)
        checks, answers = checks + look.checks, look.answers
    elif job_server is not None:
        checks.append(nodes_not_asked())
    elif config is not None:
        checks.append(check_local_ray(settings))
    if job_server is not None:
        checks += check_job_server(job_server)
    return Findings(checks, answers)


def is_job_server(address: str) -> bool:
    """Whether it is the address of a dashboard; else it is that of a Ray to join."""
    return address.startswith(("http://", "https://"))


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
        # the default file may be one that Ray made for itself; the next local run mends its mode
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


def ray_listeners() -> Iterator[tuple[str, str, int]]:
    """Process, address and port of everything that belongs to Ray here and waits for others."""
    for process in psutil.process_iter(["name"]):
        name = process.info["name"] or ""
        if name not in RAY_DAEMONS and not name.startswith("ray::"):
            continue
        with contextlib.suppress(psutil.Error):  # it has ended, or is another user's
            for found in process.net_connections("inet"):
                if found.status == psutil.CONN_LISTEN:
                    yield name, found.laddr.ip, found.laddr.port


def check_ports(listeners: Iterable[tuple[str, str, int]]) -> Check:
    """Whether others can reach a Ray of this machine."""
    found = list(listeners)
    reachable = sorted({(port, name) for name, ip, port in found if not is_loopback(ip)})
    if reachable:
        shown = ", ".join(f"{name} {port}" for port, name in reachable[:FEW_PORTS])
        more = f" and {len(reachable) - FEW_PORTS} more" if len(reachable) > FEW_PORTS else ""
        advice = "let only nodes of the cluster reach them: see docs/operations.md, Firewall"
        return Check("ports", "warn", f"others can reach {shown}{more}", advice)
    now = f"{len(found)} ports of Ray are open now" if found else "Ray is not running now"
    return Check("ports", "ok", f"a local run listens on 127.0.0.1 alone; {now}")


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches the address, also in the form ::ffff:127.0.0.1."""
    ip = ipaddress.ip_address(address)
    mapped = getattr(ip, "ipv4_mapped", None)
    return (mapped or ip).is_loopback


def check_space(name: str, folder: Path) -> Check:
    """Free space where ``folder`` is or will be."""
    existing = nearest_existing(folder)
    free = shutil.disk_usage(existing).free
    found = f"{free / 1e9:.1f} GB free at {existing}"
    state = space_state(free)
    return Check(name, state, found, "" if state == "ok" else "free space; see `peg gc`")


def check_store(location: str) -> Iterator[Check]:
    """Whether the store can be reached and written to, and who is using it."""
    if not is_url(location):
        existing = nearest_existing(Path(location))
        if not os.access(existing, os.W_OK | os.X_OK):
            found = f"{existing} cannot be written to"
            yield Check("store", "fail", found, "check its permissions")
            return
        yield check_space("store", Path(location))
    yield told("store lease", lambda: _lease_of(location))


def _lease_of(location: str) -> str:
    holder = open_store(location).holder()
    return "free" if holder is None else f"in use by process {holder['pid']} on {holder['host']}"


def check_local_ray(settings: ClusterSettings) -> Check:
    """This machine has room for a Ray of its own."""
    needed = settings.workers * settings.task_memory_bytes
    memory = psutil.virtual_memory().total
    found = f"a local Ray; tasks may use {needed / 1e9:.1f} of {memory / 1e9:.1f} GB"
    if needed > memory:
        advice = "lower `cluster.workers` or `cluster.task_memory`"
        return Check("cluster", "warn", found, advice)
    return Check("cluster", "ok", found)


def nodes_not_asked() -> Check:
    """A job server takes jobs, and says nothing of what its nodes see."""
    advice = "run `peg doctor CONFIG --address auto` on a machine of the cluster"
    return Check("nodes", "warn", "not asked: a job server does not lead to them", advice)


def check_job_server(address: str) -> Iterator[Check]:
    """Reachability, authentication and version of a cluster that takes jobs."""
    try:
        client = JobClient(address)
    except PegError as error:
        yield failed("job server", error)
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
