"""The one way from a stage to Ray and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import ray
from ray.exceptions import NodeDiedError, RayError, RayTaskError

from peg_core.atomic_file import write_json
from peg_core.errors import DiskFull, PegError, is_disk_full
from peg_core.storage.file_record import FileRecord
from peg_core.storage.stored_path import publish
from workers.cluster import Cluster, ClusterLost, thread_limits
from workers.cluster_settings import ClusterSettings
from workers.ray_nodes.known_nodes import largest_memory, most_cpus
from workers.ray_nodes.taken_away import was_taken_away
from workers.shard import FILES_KEY, PEAK_KEY, Shard, read_markers, run_shard

POLL_SECONDS = 0.5

# What a task returns: a small JSON-ready dictionary, described by a TypedDict.
Result = TypeVar("Result", bound=Mapping[str, Any])
OnProgress = Callable[["TaskProgress[Any]"], None]
# Tells the user how far a stage is: done, total, a note.
Update = Callable[[float, float, str], None]


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
        written: What this process writes for the stage, filled as files appear; tasks on other
            machines find it in the store.

    Attributes:
        peak_bytes: Memory of the largest task so far, those of an interrupted run included.
        retries: Tasks that had to run again because a worker or node was lost.
        files: What was brought to an object store, by name in the artifact.
    """

    def __init__(
        self,
        cluster: Cluster,
        markers: Path,
        update: Update = _say_nothing,
        written: set[Path] | None = None,
    ) -> None:
        self.cluster = cluster
        self.markers = markers
        self.update = update
        self.peak_bytes = 0
        self.retries = 0
        self.files: dict[str, FileRecord] = {}
        self._written = set() if written is None else written

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
        gpus: float = 0,
        memory_bytes: int | None = None,
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
            cpus: Of one task, at most those of a machine; None: as the cluster says. 0 is for a
                task that only waits.
            gpus: Of one task that computes on them.
            memory_bytes: What a task may hold, beside what it maps; None: as the cluster says.
            on_progress: Called instead of telling the user about finished shards.

        Returns:
            The results in the order of ``shards``.
        """
        markers = markers or self.markers
        tell = on_progress or (lambda p: self.update(p.done, p.total, note))
        self.publish_written()
        results = read_markers(markers, shards)
        waiting = [shard for shard in shards if results[shard.name] is None]
        done = 0
        for marker in results.values():
            if marker is not None:
                done += 1
                tell(TaskProgress(done, len(shards), self._count(marker), reused=True))
        tell(TaskProgress(done, len(shards)))
        if waiting:
            self.cluster.connect()
            resources = self._resources(cpus, gpus, memory_bytes)
            for shard, marker in self._run(task, waiting, markers, resources, tell, done):
                results[shard.name] = marker
        return [marker for marker in results.values() if marker is not None]  # type: ignore[misc]

    def mark(self, name: str, result: Mapping[str, Any]) -> None:
        """Leave the mark of a shard whose work was done by other tasks."""
        write_json(self.markers / f"{name}.json", {**result, PEAK_KEY: self.peak_bytes})
        self.publish_written()

    def publish_written(self) -> None:
        """Bring what this process wrote to the store, where tasks of other machines find it."""
        written = set(self._written)
        self.files |= publish(sorted(written))
        self._written -= written

    def _resources(self, cpus: int | None, gpus: float, memory_bytes: int | None) -> dict[str, Any]:
        """What Ray is told of a task; no more memory than the largest machine has."""
        settings = self.cluster.settings
        memory = settings.task_memory_bytes if memory_bytes is None else memory_bytes
        own = settings.cpus_per_worker
        cpus = own if cpus is None else max(min(cpus, most_cpus()), min(cpus, own))
        # libraries read how many threads they may have as they are loaded: a process of its own
        environment = {"runtime_env": {"env_vars": thread_limits(cpus)}} if cpus > own else {}
        return {
            **environment,
            "num_cpus": cpus,
            "num_gpus": gpus or None,
            "memory": min(memory, largest_memory()),
            "max_retries": settings.retries,
            "scheduling_strategy": "SPREAD",
        }

    def _run(
        self,
        task: Callable[..., Any],
        waiting: list[Shard],
        markers: Path,
        resources: dict[str, Any],
        tell: OnProgress,
        done: int,
    ) -> list[tuple[Shard, dict[str, Any]]]:
        settings = self.cluster.settings
        threads = resources["num_cpus"] or settings.cpus_per_worker
        remote = _remote_shard.options(**resources)
        queue = list(reversed(waiting))
        total = done + len(waiting)
        running: dict[Any, Shard] = {}
        finished: list[tuple[Shard, dict[str, Any]]] = []
        try:
            while queue or running:
                while queue and len(running) < settings.workers:
                    shard = queue.pop()
                    marker = markers / f"{shard.name}.json"
                    running[remote.remote(task, shard.arguments, marker, threads)] = shard
                ready, _ = ray.wait(list(running), timeout=POLL_SECONDS)
                self.cluster.require_alive()
                for reference in ready:
                    shard = running.pop(reference)
                    collected = _collect(reference, shard)
                    if collected is None:
                        self.retries += 1
                        queue.append(shard)
                        continue
                    values, retries = collected
                    self.retries += retries
                    finished.append((shard, self._count(values)))
                    tell(TaskProgress(done + len(finished), total, values))
                if not ready:
                    tell(TaskProgress(done + len(finished), total))
        except ClusterLost:
            running.clear()  # nobody is left to cancel them
            raise
        finally:
            _cancel(list(running))
        return finished

    def _count(self, marker: dict[str, Any]) -> dict[str, Any]:
        """Take memory and files out of a marker: what is left is the task's own result."""
        self.peak_bytes = max(self.peak_bytes, int(marker.pop(PEAK_KEY, 0)))
        files = marker.pop(FILES_KEY, {})
        self.files |= {name: FileRecord.of(value) for name, value in files.items()}
        return marker


def _cancel(references: list[Any]) -> None:
    """End tasks; cancelling one that has ended makes Ray end this process."""
    if references:
        _, under_way = ray.wait(references, num_returns=len(references), timeout=0)
        for reference in under_way:
            ray.cancel(reference, force=True)


def _collect(reference: Any, shard: Shard) -> tuple[dict[str, Any], int] | None:
    """What a task returned, and its retries; None: its machine was taken away, nobody's fault."""
    try:
        result: tuple[dict[str, Any], int] = ray.get(reference)
    except RayTaskError as error:
        if isinstance(error.cause, PegError):
            raise error.cause from None
        raise _failure(shard, error) from error
    except RayError as error:
        if isinstance(error, NodeDiedError) and was_taken_away(error):
            return None
        raise PegError(
            f"task {shard.name} was lost with its worker more often than `cluster.retries` allows "
            f"({type(error).__name__}: {str(error).splitlines()[0]}); often memory ran out: lower "
            "`cluster.workers`, or run again to go on from the finished shards"
        ) from error
    return result


def _failure(shard: Shard, error: RayTaskError) -> PegError:
    """An error of a task that the task itself did not explain; the run's log has all of it."""
    cause = error.cause
    if is_disk_full(cause):
        return DiskFull.during(f"task {shard.name}", cause)
    return PegError(
        f"task {shard.name} failed: {type(cause).__name__}: {cause}; the log of the run in "
        "STORE/logs has the whole story: run again, and if it stays, report it with that log"
    )


# One remote function for all maps: Ray keeps a line of workers for each that it sees.
_remote_shard = ray.remote(run_shard)
