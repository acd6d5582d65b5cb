"""The steps of one large encoding: maps of tasks that belong together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peg_core.storage.stored_path import is_there, remove
from workers.shard import Shard
from workers.task_map import Result, TaskMap, TaskProgress
from workers.tasks.encode import EncodeRequest, EncodeResult


@dataclass(frozen=True)
class EncodingSteps:
    """Maps tasks for one encoding: marks in its own folder, progress under its name.

    Args:
        tasks: Of the stage.
        request: The encoding.
        work: Folder for what tasks leave to each other.
    """

    tasks: TaskMap
    request: EncodeRequest
    work: Path

    @property
    def is_done(self) -> bool:
        """Whether an earlier run finished the encoding."""
        return is_there(self.tasks.markers / f"{self.request.name}.json")

    def map(
        self,
        what: str,
        task: Callable[..., Result],
        shards: Sequence[Shard],
        *,
        markers: Path | None = None,
    ) -> list[Result]:
        """Run a task for every shard; a killed run goes on at the last finished one.

        Args:
            what: Name of the step, for the user.
            markers: Another folder for the marks than ``work/done``.
        """

        def update(progress: TaskProgress[Any]) -> None:
            done, total = progress.done, progress.total
            self.tasks.update(done, total, f"{self.request.name}: {what} {done}/{total}")

        return self.tasks.map(
            task, shards, markers=markers or self.work / "done", on_progress=update
        )

    def finish(self, result: EncodeResult) -> None:
        """Mark the encoding as one that ``encode_task`` has made."""
        self.tasks.mark(self.request.name, result)
        self.leave()

    def leave(self) -> None:
        """Remove what the tasks left; without a mark the encoding is made by one task."""
        remove(self.work)
