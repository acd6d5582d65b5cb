"""The one way in which stages run tasks on Ray."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from peg_core.atomic_file import write_json
from peg_core.errors import PegError
from workers.cluster import Cluster, pin_threads

POLL_SECONDS = 0.5
Result = dict[str, Any]
Task = Callable[..., Result]


@dataclass(frozen=True)
class Shard:
    """One task: a name that is unique in its stage, and keyword arguments."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TaskProgress:
    """How far a map has come.

    Args:
        result: Of the shard that just ended, if one did.
        reused: It had ended in an earlier run.
    """

    done: int
    total: int
    result: Result | None = None
    reused: bool = False


def task_map(
    cluster: Cluster,
    task: Task,
    shards: Sequence[Shard],
    *,
    markers: Path,
    cpus: int | None = None,
    on_progress: Callable[[TaskProgress], None] = lambda _: None,
) -> list[Result]:
    """Run ``task(**shard.arguments)`` for every shard, at most ``workers`` side by side.

    A shard that ended leaves its result, a small JSON-ready dictionary, in
    ``markers/<name>.json``; shards with a marker are not run again, so a map
    that was killed goes on where it stopped. Tasks must be idempotent. A task lost
    with its worker or node is retried; an error of the task itself is raised here
    as it is, after the tasks under way were cancelled.

    Returns:
        The results in the order of ``shards``.
    """
    results = {shard.name: _read_marker(markers, shard) for shard in shards}
    waiting = [shard for shard in shards if results[shard.name] is None]
    done = 0
    for result in results.values():
        if result is not None:
            done += 1
            on_progress(TaskProgress(done, len(shards), result, reused=True))
    on_progress(TaskProgress(done, len(shards)))
    if waiting:
        cluster.connect()
        for shard, result in _run(cluster, task, waiting, markers, cpus, on_progress, done):
            results[shard.name] = result
    return [result for result in results.values() if result is not None]


def _run(
    cluster: Cluster,
    task: Task,
    waiting: list[Shard],
    markers: Path,
    cpus: int | None,
    on_progress: Callable[[TaskProgress], None],
    done: int,
) -> list[tuple[Shard, Result]]:
    settings = cluster.settings
    threads = cpus or settings.cpus_per_worker
    remote = _remote_shard.options(
        num_cpus=threads, num_gpus=settings.gpus_per_worker or None, max_retries=settings.retries
    )
    queue = list(reversed(waiting))
    total = done + len(waiting)
    running: dict[Any, Shard] = {}
    finished: list[tuple[Shard, Result]] = []
    try:
        while queue or running:
            while queue and len(running) < settings.workers:
                shard = queue.pop()
                marker = str(markers / f"{shard.name}.json")
                running[remote.remote(task, shard.arguments, marker, threads)] = shard
            ready, _ = ray.wait(list(running), timeout=POLL_SECONDS)
            for reference in ready:
                shard = running.pop(reference)
                result, retries = _collect(reference, shard)
                cluster.retries_seen += retries
                finished.append((shard, result))
                on_progress(TaskProgress(done + len(finished), total, result))
            if not ready:
                on_progress(TaskProgress(done + len(finished), total))
    finally:
        _cancel(list(running))
    return finished


def _cancel(references: list[Any]) -> None:
    """End tasks; cancelling one that has ended makes Ray end this process."""
    if references:
        _, under_way = ray.wait(references, num_returns=len(references), timeout=0)
        for reference in under_way:
            ray.cancel(reference, force=True)


def _collect(reference: Any, shard: Shard) -> tuple[Result, int]:
    try:
        result: tuple[Result, int] = ray.get(reference)
    except RayTaskError as error:
        if isinstance(error.cause, PegError):
            raise error.cause from None
        raise PegError(f"task {shard.name} failed:\n{error}") from error
    except RayError as error:
        raise PegError(
            f"task {shard.name} was lost with its worker more often than `cluster.retries` allows "
            f"({type(error).__name__}: {str(error).splitlines()[0]}); often memory ran out: lower "
            "`cluster.workers`, or run again to go on from the finished shards"
        ) from error
    return result


def _run_shard(
    task: Task, arguments: dict[str, Any], marker: str, threads: int
) -> tuple[Result, int]:
    """What runs in the worker: threads pinned, then the task, then its marker.

    Returns:
        The result, and how often Ray had run the task before without coming to its end.
    """
    pin_threads(threads)
    result = task(**arguments)
    result["peak_memory_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    write_json(Path(marker), result)
    return result, _attempts_before()


# One remote function for all maps: Ray keeps a line of workers for each that it sees.
_remote_shard = ray.remote(_run_shard)


def _attempts_before() -> int:
    """Ray's public interface does not tell a task its attempt; its core does."""
    return int(ray._private.worker.global_worker.core_worker.get_current_task_attempt_number())


def _read_marker(markers: Path, shard: Shard) -> Result | None:
    path = markers / f"{shard.name}.json"
    return json.loads(path.read_text()) if path.exists() else None
