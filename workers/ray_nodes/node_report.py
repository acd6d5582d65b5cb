"""What a node of a cluster says of itself: versions, room, and whether it reaches the store."""

from __future__ import annotations

import glob
import importlib.metadata
import platform
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import disk_usage
from typing import Any, TypedDict

import psutil
import ray
from ray.exceptions import GetTimeoutError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from peg_core.errors import PegError
from peg_core.object_url import is_url
from peg_core.storage.node_cache import cache_folder
from peg_core.storage.object_storage import Storage

PACKAGES = ("ray", "torch", "numpy", "pyarrow", "peg-pipeline")
PROBE = ".peg-probe-"
# A store that cannot be reached is asked several times, with ten seconds each.
REPORT_SECONDS = 120.0
CLOCK_SECONDS = 30.0
CLOCK_LOOKS = 3
NOT_INSTALLED = "none"


@dataclass(frozen=True)
class NodeQuestions:
    """What every node is asked.

    Args:
        store: URL of the store, or a folder with the probe of the driver; None: no store.
        token: In the name and the text of the probe.
        inputs: Files, folders and globs that tasks read.
    """

    store: str | None = None
    token: str = ""
    inputs: tuple[str, ...] = ()


class NodeReport(TypedDict):
    """What a node says; a problem is empty where there is none."""

    versions: dict[str, str]
    memory_bytes: int
    cache: str
    cache_free_bytes: int
    cache_problem: str
    store_problem: str
    missing_inputs: list[str]


@dataclass(frozen=True)
class NodeAnswer:
    """A node that is alive, and what came back from it.

    Args:
        name: Its address, made unique.
        cpus, gpus, memory_bytes: What Ray may give to tasks there.
        report: None where the node could not make one; then ``problem`` says why.
        skew_seconds: How far its clock is ahead of ours, at least; 0 where the round trip
            explains the difference.
    """

    name: str
    cpus: float
    gpus: float
    memory_bytes: float
    report: NodeReport | None = None
    problem: str = ""
    skew_seconds: float = 0.0


class NodeProbe:
    """An actor that answers for its node."""

    def report(self, questions: NodeQuestions) -> NodeReport:
        cache = cache_folder()
        existing = nearest_existing(cache)
        return {
            "versions": versions(),
            "memory_bytes": psutil.virtual_memory().total,
            "cache": str(cache),
            "cache_free_bytes": disk_usage(existing).free,
            "cache_problem": _write_problem(existing),
            "store_problem": store_problem(questions.store, questions.token),
            "missing_inputs": [path for path in questions.inputs if not glob.glob(path)],
        }

    def time(self) -> float:
        return time.time()


def ask_nodes(questions: NodeQuestions) -> list[NodeAnswer]:
    """Ask every node of the connected cluster that is alive; they answer side by side."""
    known: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    alive = [node for node in known if node["Alive"]]
    probes = [_probe_on(node) for node in alive]
    reports = [probe.report.remote(questions) for probe in probes]
    ray.wait(reports, num_returns=len(reports), timeout=REPORT_SECONDS)
    try:
        return [
            _answer(name, node, probe, report)
            for name, node, probe, report in zip(_names(alive), alive, probes, reports, strict=True)
        ]
    finally:
        for probe in probes:
            ray.kill(probe)


def _probe_on(node: dict[str, Any]) -> Any:
    place = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
    return ray.remote(NodeProbe).options(num_cpus=0, scheduling_strategy=place).remote()


def _answer(name: str, node: dict[str, Any], probe: Any, reference: Any) -> NodeAnswer:
    resources = node["Resources"]
    known = NodeAnswer(name, *(resources.get(key, 0.0) for key in ("CPU", "GPU", "memory")))
    try:
        report: NodeReport = ray.get(reference, timeout=0.1)
        return replace(known, report=report, skew_seconds=_clock_skew(probe))
    except RayError as error:
        return replace(known, problem=_reason(error))


def _clock_skew(probe: Any) -> float:
    """How far the clock of a node is from ours, of the look that took the shortest time."""
    looks = []
    for _ in range(CLOCK_LOOKS):
        sent = time.time()
        there = ray.get(probe.time.remote(), timeout=CLOCK_SECONDS)
        looks.append((time.time() - sent, clock_skew(sent, there, time.time())))
    return min(looks)[1]


def clock_skew(sent: float, there: float, received: float) -> float:
    """Seconds by which ``there`` lies outside of the time between ``sent`` and ``received``."""
    return there - received if there > received else min(there - sent, 0.0)


def _reason(error: RayError) -> str:
    if isinstance(error, GetTimeoutError):
        return f"no answer within {REPORT_SECONDS:.0f} s"
    cause = error.cause if isinstance(error, RayTaskError) else error
    # the last line of what Ray tells of an actor is the error that ended it
    lines = str(cause).strip().splitlines() or [type(cause).__name__]
    return lines[-1].strip()


def _names(nodes: list[dict[str, Any]]) -> Iterator[str]:
    """Addresses; with the beginning of the id where several nodes have one address."""
    addresses = [node["NodeManagerAddress"] for node in nodes]
    for node, address in zip(nodes, addresses, strict=True):
        alone = addresses.count(address) == 1
        yield address if alone else f"{address}/{node['NodeID'][:4]}"


def versions() -> dict[str, str]:
    """Of Python and the packages that must be alike on all nodes; of this process."""
    return {"Python": platform.python_version(), **{name: _version(name) for name in PACKAGES}}


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return NOT_INSTALLED


def nearest_existing(folder: Path) -> Path:
    """The folder itself, or the first one above it that exists."""
    folder = folder.absolute()
    return next(parent for parent in (folder, *folder.parents) if parent.exists())


@contextmanager
def probe_in(folder: Path, token: str) -> Iterator[Path]:
    """A file with a random text in the folder, or where the folder will be, for nodes to find."""
    existing = nearest_existing(folder)
    probe = existing / f"{PROBE}{token}"
    try:
        probe.write_text(token)
        yield existing
    finally:
        probe.unlink(missing_ok=True)


def store_problem(store: str | None, token: str) -> str:
    """Why this machine cannot use the store; empty where it can."""
    if store is None:
        return ""
    return _url_problem(store) if is_url(store) else _folder_problem(Path(store), token)


def _folder_problem(folder: Path, token: str) -> str:
    try:
        found = (folder / f"{PROBE}{token}").read_text()
    except OSError as error:
        return f"does not see what was just written to {folder} ({error.strerror})"
    if found != token:
        return f"sees another file than what was just written to {folder}"
    return _write_problem(folder)


def _write_problem(folder: Path) -> str:
    try:
        with tempfile.NamedTemporaryFile(prefix=PROBE, dir=folder) as probe:
            probe.write(b"probe")
    except OSError as error:
        return f"cannot write to {folder} ({error.strerror})"
    return ""


def _url_problem(store: str) -> str:
    """Look into the store, write an object and remove it."""
    probe = f"{PROBE}{uuid.uuid4().hex}"
    try:
        storage = Storage(store)
        storage.files(recursive=False)
        storage.write_json(probe, {})
        storage.delete(probe)
    except PegError as error:
        return str(error)
    return ""
