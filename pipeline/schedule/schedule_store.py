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

from peg_core.errors import ConfigError, nearest_hint
from peg_core.object_url import is_url
from peg_core.storage.object_storage import Storage
from pipeline.config.redaction import redact
from pipeline.schedule.field_checks import faults
from pipeline.schedule.schedule import RESERVED, Schedule
from pipeline.schedule.stored_record import UnreadableRecord, read_record
from pipeline.schedule.tick import Tick
from pipeline.store.lease import Lease, is_alive, read_holder
from pipeline.store.local_store import open_store
from pipeline.store.remote_lease import RemoteLease, current_holder

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
        """All of them, by name; UnreadableRecord when one cannot be read.

        For those who must know all, such as whoever removes what no schedule needs.
        """
        return [self.get(name) for name in self.names()]

    def readable_schedules(self) -> tuple[list[Schedule], dict[str, UnreadableRecord]]:
        """Those that can be read, by name, and what is wrong with the others."""
        found, broken = [], {}
        for name in self.names():
            try:
                schedule = self._read(name)
            except UnreadableRecord as error:
                broken[name] = error
                continue
            if schedule is not None:  # removed since it was listed
                found.append(schedule)
        return found, broken

    def names(self) -> list[str]:
        files = [file.name for file in self._storage.files(FOLDER, recursive=False)]
        found = [Path(file).stem for file in files if _is_record(file)]
        return [name for name in found if name != RESERVED]

    def get(self, name: str) -> Schedule:
        """The schedule; ConfigError when there is none, UnreadableRecord when it is broken."""
        found = self._read(name) if "/" not in name and name != RESERVED else None
        if found is None:
            raise self._no_schedule(name)
        return found

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
        """Forget a schedule, also one that cannot be read; its history stays."""
        if name not in self.names():
            raise self._no_schedule(name)
        self._storage.delete(f"{FOLDER}/{name}.json")

    def ticks(self, name: str | None = None) -> list[Tick]:
        """The readable history, of one schedule or of all, in the order in which ticks were due."""
        return self.readable_ticks(name)[0]

    def readable_ticks(self, name: str | None = None) -> tuple[list[Tick], list[UnreadableRecord]]:
        """The same, and what is wrong with the records that are left out."""
        folder = f"{FOLDER}/{name}/history" if name else FOLDER
        files = [file.name for file in self._storage.files(folder) if "/history/" in file.name]
        found, broken = self._read_ticks(files, "history")
        return sorted(found.values(), key=lambda tick: tick.due), broken

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

    def take_requests(self) -> tuple[list[Tick], list[UnreadableRecord]]:
        """The ticks requested since the last call, and the requests that cannot be read."""
        folders = [f"{FOLDER}/{name}/requests" for name in self.names()]
        files = [file.name for folder in folders for file in self._storage.files(folder)]
        found, broken = self._read_ticks(files, "requests")
        for file in found:
            self._storage.delete(file)
        return list(found.values()), broken

    def lease(self) -> Lease | RemoteLease:
        """Held by whoever submits ticks."""
        if is_url(self.store):
            return RemoteLease(Storage(self._storage.location(FOLDER)))
        return Lease(Path(self.store) / FOLDER)

    def daemon(self) -> dict[str, Any] | None:
        """The daemon that serves this store, if there is one."""
        if is_url(self.store):
            return current_holder(Storage(self._storage.location(FOLDER)))
        holder = read_holder(Path(self.store) / FOLDER / "lease.json")
        return holder if holder is not None and is_alive(holder) else None

    def pipeline_holder(self) -> dict[str, Any] | None:
        """The run that writes to the store now, whoever started it."""
        return open_store(self.store).holder()

    def _read(self, name: str) -> Schedule | None:
        file = f"{FOLDER}/{name}.json"
        try:
            values = read_record(self._storage, file)
            if values is None and not self._storage.exists(file):
                return None
            schedule = Schedule.model_validate(values)
            if schedule.name != name:
                raise ValueError(f"it holds the schedule {schedule.name!r}")
        except ValueError as error:
            location = self._storage.location(file)
            raise UnreadableRecord.schedule(name, location, self.store, _reason(error)) from error
        return schedule

    def _read_ticks(
        self, files: list[str], kind: str
    ) -> tuple[dict[str, Tick], list[UnreadableRecord]]:
        """File to tick, of the records among the files, and what is wrong with the others."""
        found, broken = {}, []
        for file in filter(_is_record, files):
            try:
                values = read_record(self._storage, file)
                if values is None and not self._storage.exists(file):
                    continue
                tick = Tick.read(values)
                if _record_name(tick, kind) != file:
                    raise ValueError(f"it holds a tick of {tick.schedule!r} at {tick.due}")
                found[file] = tick
            except ValueError as error:
                broken.append(UnreadableRecord.tick(self._storage.location(file), _reason(error)))
        return found, broken

    def _no_schedule(self, name: str) -> ConfigError:
        known = self.names()
        return ConfigError(
            f"{self.store} has no schedule {name!r}; it has {', '.join(known) or 'none'}"
            f"{nearest_hint(name, known)}"
        )


def last_due(ticks: list[Tick], schedule: Schedule) -> datetime:
    """The time up to which ticks of the schedule have been seen."""
    own = [t.due_time for t in ticks if t.schedule == schedule.name and t.kind == "scheduled"]
    return max([schedule.created, *own])


def _record_name(tick: Tick, kind: str) -> str:
    return f"{FOLDER}/{tick.schedule}/{kind}/{tick.due}.json"


def _reason(error: ValueError) -> str:
    return ", ".join(faults(error)) if isinstance(error, ValidationError) else str(error)


def _is_record(file: str) -> bool:
    return file.endswith(".json") and not file.rpartition("/")[2].startswith(".")


def _create(path: Path, values: dict[str, Any]) -> bool:
    """Make a file with its content at once; False when it exists."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(json.dumps(values, indent=2))
        os.link(draft, path)
    except FileExistsError:
        return False
    finally:
        draft.unlink(missing_ok=True)
    return True
