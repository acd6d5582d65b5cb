"""Schedules and their history, kept in the store of the pipeline.

``schedules/<name>.json`` is a schedule, ``schedules/<name>/history/<due>.json`` a tick of it,
``schedules/<name>/requests/<due>.json`` a tick requested from a running daemon.
"""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from peg_core.errors import ConfigError, PegError, nearest_hint
from peg_core.object_url import is_url
from pipeline.config.redaction import redact
from pipeline.schedule.schedule import RESERVED, Schedule
from pipeline.schedule.tick import Tick
from pipeline.store.lease import Lease, is_alive, read_holder
from pipeline.store.local_store import open_store
from pipeline.store.object_storage import Storage
from pipeline.store.remote_lease import RemoteLease, live_runs

FOLDER = "schedules"


class ScheduleStore:
    """The schedules of one store.

    Args:
        store: A folder or the URL of an object store.
    """

    def __init__(self, store: str) -> None:
        self.store = store if is_url(store) else str(Path(store).absolute())
        self._storage = Storage(self.store)

    def schedules(self) -> list[Schedule]:
        """All of them, by name."""
        return [self.get(name) for name in self.names()]

    def names(self) -> list[str]:
        files = [file.name for file in self._storage.files(FOLDER, recursive=False)]
        found = [Path(file).stem for file in files if _is_record(file)]
        return [name for name in found if name != RESERVED]

    def get(self, name: str) -> Schedule:
        """The schedule; ConfigError when there is none."""
        values = self._storage.read_json(f"{FOLDER}/{name}.json")
        if values is None:
            known = self.names()
            raise ConfigError(
                f"{self.store} has no schedule {name!r}; it has {', '.join(known) or 'none'}"
                f"{nearest_hint(name, known)}"
            )
        try:
            return Schedule.model_validate(values)
        except ValidationError as error:
            location = self._storage.location(f"{FOLDER}/{name}.json")
            raise PegError(
                f"{location} is not a schedule ({error.errors()[0]['msg']}); remove it and add it "
                "again"
            ) from error

    def add(self, schedule: Schedule, *, replace: bool = False) -> None:
        """Keep a schedule."""
        name = f"{FOLDER}/{schedule.name}.json"
        if not replace and self._storage.exists(name):
            raise ConfigError(
                f"{self.store} already has a schedule {schedule.name!r}; choose another --name, or "
                "add it with --replace"
            )
        text = schedule.model_dump_json()
        if redact(text) != text:
            raise ConfigError(
                "the schedule would hold a secret, and schedules are stored in plain text; leave "
                "it out and set it in the environment of the daemon or of the cluster's nodes"
            )
        self._storage.write_json(name, json.loads(text))

    def remove(self, name: str) -> None:
        """Forget a schedule; its history stays."""
        self.get(name)
        self._storage.delete(f"{FOLDER}/{name}.json")

    def ticks(self, name: str | None = None) -> list[Tick]:
        """The history, of one schedule or of all, in the order in which ticks were due."""
        folder = f"{FOLDER}/{name}/history" if name else FOLDER
        files = [file.name for file in self._storage.files(folder) if "/history/" in file.name]
        values = [self._storage.read_json(file) for file in files if _is_record(file)]
        found = [Tick.read(value) for value in values if value is not None]
        return sorted(found, key=lambda tick: tick.due)

    def claim(self, tick: Tick) -> bool:
        """Put a new tick into the history; False when it is there already."""
        name = _record_name(tick, "history")
        if is_url(self.store):
            # whoever claims holds the daemon's lease: nobody writes between the check and the write
            if self._storage.exists(name):
                return False
            self._storage.write_json(name, tick.as_dict())
            return True
        return _create(Path(self.store) / name, tick.as_dict())

    def save(self, tick: Tick) -> None:
        """Record how a claimed tick turned out."""
        self._storage.write_json(_record_name(tick, "history"), tick.as_dict())

    def request(self, tick: Tick) -> None:
        """Ask the daemon for a tick."""
        self._storage.write_json(_record_name(tick, "requests"), tick.as_dict())

    def take_requests(self) -> list[Tick]:
        """The ticks requested since the last call."""
        taken = []
        for name in self.names():
            for file in self._storage.files(f"{FOLDER}/{name}/requests"):
                values = self._storage.read_json(file.name) if _is_record(file.name) else None
                if values is not None:
                    self._storage.delete(file.name)
                    taken.append(Tick.read(values))
        return taken

    def lease(self) -> Lease | RemoteLease:
        """Held by whoever submits ticks."""
        if is_url(self.store):
            return RemoteLease(Storage(self._storage.location(FOLDER)))
        return Lease(Path(self.store) / FOLDER)

    def daemon(self) -> dict[str, Any] | None:
        """The daemon that serves this store, if there is one."""
        if is_url(self.store):
            runs = live_runs(Storage(self._storage.location(FOLDER))).values()
            return next((run for run in runs if run["held"]), None)
        holder = read_holder(Path(self.store) / FOLDER / "lease.json")
        return holder if holder is not None and is_alive(holder) else None

    def pipeline_holder(self) -> dict[str, Any] | None:
        """The run that writes to the store now, whoever started it."""
        return open_store(self.store).holder()


def last_due(ticks: list[Tick], schedule: Schedule) -> datetime:
    """The time up to which ticks of the schedule have been seen."""
    own = [t.due_time for t in ticks if t.schedule == schedule.name and t.kind == "scheduled"]
    return max([schedule.created, *own])


def _record_name(tick: Tick, kind: str) -> str:
    return f"{FOLDER}/{tick.schedule}/{kind}/{tick.due}.json"


def _is_record(file: str) -> bool:
    return file.endswith(".json") and not file.rpartition("/")[2].startswith(".")


def _create(path: Path, values: dict[str, Any]) -> bool:
    """Make a file with its content at once; False when it exists."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(json.dumps(values, indent=2))
    try:
        os.link(draft, path)
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    return True
