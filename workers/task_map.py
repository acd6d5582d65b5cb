"""The one way from a stage to Ray and back."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import ray
from ray.exceptions import RayError, RayTaskError

from peg_core.atomic_file import write_json
from peg_core.errors import PegError
from workers.cluster import Cluster, pin_threads
from workers.cluster_settings import ClusterSettings

POLL_SECONDS = 0.5
PEAK_KEY = "peak_memory_bytes"

# What a task returns: a small JSON-ready dictionary, described by a TypedDict.
Result = TypeVar("Result", bound=Mapping[str, Any])
OnProgress = Callable[["TaskProgress[Any]"], None]
# Tells the user how far a stage is: done, total, a note.
Update = Callable[[float, float, str], None]


@dataclass(frozen=True)
class Shard:
    """One task: a name that is unique in its stage, and keyword arguments."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TaskProgress(Generic[Result]):
    """How far a map has come.

    Args:
        result: Of the shard that just ended, if one did.
        reused: It had ended in an earlier run.
    """

    done: int
    total: int
    result: Result | None = None
    reused: bool = False


def _say_nothing(done: float, total: float, note: str) -> None:
    del done, total, note


class TaskMap:
    """Runs the tasks of one stage and keeps count of what they took.

    Args:
        cluster: Where tasks run.
        markers: Folder for the marks of finished shards.
        update: Tells the user how far the stage is.

    Attributes:
        peak_bytes: Memory of the largest task so far, those of an interrupted run included.
        retries: Tasks that had to run again because a worker or node was lost.
    """

    def __init__(self, cluster: Cluster, markers: Path, update: Update = _say_nothing) -> None:
        self.cluster = cluster
        self.markers = markers
        self.update = update
        self.peak_bytes = 0
        self.retries = 0

    @property
    def settings(self) -> ClusterSettings:
        return self.cluster.settings

    def map(
        self,
        task: Callable[..., Result],
        shards: Sequence[Shard],
        *,
        note: str = "",
        markers: Path | None = None,
        cpus: int | None = None,
        on_progress: OnProgress | None = None,
    ) -> list[Result]:
        """Run ``task(**shard.arguments)`` for every shard, at most ``workers`` side by side.

        A shard that ended leaves its result, a small JSON-ready dictionary, in
        ``markers/<name>.json``; shards with a marker are not run again, so a map
        that was killed goes on where it stopped. Tasks must be idempotent. A task lost
        with its worker or node is retried; an error of the task itself is raised here
        as it is, after the tasks under way were cancelled.

        Args:
            note: Shown beside the number of finished shards.
            markers: Another folder for the marks than that of the stage.
            cpus: Of one task; none: as the cluster says.
            on_progress: Called instead of telling the user about finished shards.

        Returns:
            The results in the order of ``shards``.
        """
        markers = markers or self.markers
        tell = on_progress or (lambda p: self.update(p.done, p.total, note))
        results = {shard.name: _read_marker(markers, shard) for shard in shards}
        waiting = [shard for shard in shards if results[shard.name] is None]
        done = 0
        for marker in results.values():
            if marker is not None:
                done += 1
                tell(TaskProgress(done, len(shards), self._count(marker), reused=True))
        tell(TaskProgress(done, len(shards)))
        if waiting:
            self.cluster.connect()
            for shard, marker in self._run(task, waiting, markers, cpus, tell, done):
                results[shard.name] = marker
        return [marker for marker in results.values() if marker is not None]  # type: ignore[misc]

    def mark(self, name: str, result: Mapping[str, Any]) -> None:
        """Leave the mark of a shard whose work was done by other tasks."""
        write_json(self.markers / f"{name}.json", {**result, PEAK_KEY: self.peak_bytes})

    def _run(
        self,
        task: Callable[..., Any],
        waiting: list[Shard],
        markers: Path,
        cpus: int | None,
        tell: OnProgress,
        done: int,
    ) -> list[tuple[Shard, dict[str, Any]]]:
        settings = self.cluster.settings
        threads = cpus or settings.cpus_per_worker
        remote = _remote_shard.options(
            num_cpus=threads,
            num_gpus=settings.gpus_per_worker or None,
            max_retries=settings.retries,
        )
        queue = list(reversed(waiting))
        total = done + len(waiting)
        running: dict[Any, Shard] = {}
        finished: list[tuple[Shard, dict[str, Any]]] = []
        try:
            while queue or running:
                while queue and len(running) < settings.workers:
                    shard = queue.pop()
                    marker = str(markers / f"{shard.name}.json")
                    running[remote.remote(task, shard.arguments, marker, threads)] = shard
                ready, _ = ray.wait(list(running), timeout=POLL_SECONDS)
                for reference in ready:
                    shard = running.pop(reference)
                    values, retries = _collect(reference, shard)
                    self.retries += retries
                    finished.append((shard, self._count(values)))
                    tell(TaskProgress(done + len(finished), total, values))
                if not ready:
                    tell(TaskProgress(done + len(finished), total))
        finally:
            _cancel(list(running))
        return finished

    def _count(self, marker: dict[str, Any]) -> dict[str, Any]:
        """Take the memory out of a marker: what is left is the task's own result."""
        self.peak_bytes = max(self.peak_bytes, int(marker.pop(PEAK_KEY, 0)))
        return marker


def _cancel(references: list[Any]) -> None:
    """End tasks; cancelling one that has ended makes Ray end this process."""
    if references:
        _, under_way = ray.wait(references, num_returns=len(references), timeout=0)
        for reference in under_way:
            ray.cancel(reference, force=True)


def _collect(reference: Any, shard: Shard) -> tuple[dict[str, Any], int]:
    try:
        result: tuple[dict[str, Any], int] = ray.get(reference)
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
    task: Callable[..., Any], arguments: dict[str, Any], marker: str, threads: int
) -> tuple[dict[str, Any], int]:
    """What runs in the worker: threads pinned, then the task, then its marker.

    Returns:
        The result, and how often Ray had run the task before without coming to its end.
    """
    pin_threads(threads)
    result = task(**arguments)
    result[PEAK_KEY] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    write_json(Path(marker), result)
    return result, _attempts_before()


# One remote function for all maps: Ray keeps a line of workers for each that it sees.
_remote_shard = ray.remote(_run_shard)


def _attempts_before() -> int:
    """Ray's public interface does not tell a task its attempt; its core does."""
    core = ray._private.worker.global_worker.core_worker  # type: ignore[attr-defined]
    return int(core.get_current_task_attempt_number())


def _read_marker(markers: Path, shard: Shard) -> dict[str, Any] | None:
    path = markers / f"{shard.name}.json"
    return json.loads(path.read_text()) if path.exists() else None
