"""One writer per remote store: an object that only one run at a time can have written.

The lease is created if it is not there, and renewed, given back and taken over if it still is the
version that was read: the store decides between two runs.
docs/decisions/0021-lease-by-conditional-writes.md says why, and what is left to do elsewhere.
"""

from __future__ import annotations

import json
import logging
import os
import random
import socket
import threading
import time
import uuid
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from peg_core.conditional_object import ConditionalObject, Stored, Version
from peg_core.errors import PegError
from peg_core.object_url import ObjectUrl, StorageError
from peg_core.storage.object_storage import Storage
from pipeline.store import lease

FOLDER = "lease"
NAME = f"{FOLDER}/lease.json"
ALLOWED = "PEG_ALLOW_STORE_WITHOUT_LOCK"
# A lease counts for longer than its holder trusts it: S3 gives times in whole seconds, and the
# machines of a store need not agree to the second.
MARGIN_SECONDS = 5.0
ATTEMPTS = 5
logger = logging.getLogger(__name__)


class StoreWithoutLock(PegError):
    """The store writes an object although the condition for it does not hold."""

    @classmethod
    def at(cls, location: str) -> Self:
        return cls(
            f"{location} is in a store without conditional writes, so nothing there keeps two runs "
            "apart; use a store that has them (If-None-Match and If-Match), or see to it that runs "
            f"never overlap, for example by a scheduler that forbids it, and set {ALLOWED}=1"
        )


class LeaseLost(PegError):
    """The run may not write any more."""

    @classmethod
    def to_another(cls, location: str, holder: dict[str, Any] | None) -> Self:
        by = f" by process {holder['pid']} on {holder['host']}" if holder else ""
        return cls(
            f"the lease {location} was taken over or removed{by} while this run did not renew it; "
            "wait for the other run to end and run again: finished work is kept"
        )

    @classmethod
    def given_back(cls, location: str) -> Self:
        return cls(f"the lease {location} was given back; write to the store while it is held")

    @classmethod
    def out_of_reach(cls, location: str) -> Self:
        return cls(
            f"the lease {location} could not be renewed for {lease.LEASE_SECONDS:.0f} s, another "
            "run may hold the store by now; check the network and run again: finished work is kept"
        )


class RemoteLease:
    """Held for the time of a run; ``with RemoteLease(storage): ...``."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._location = storage.location(NAME)
        self._object = ConditionalObject(ObjectUrl.parse(self._location))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self._writing = threading.Lock()
        self._facts: dict[str, Any] = {}
        self._writes = 0
        self._version: Version | None = None
        self._renewed = 0.0
        self._lost: LeaseLost | None = None

    def __enter__(self) -> Self:
        self._facts = {**lease.own_facts(), "machine": _machine(), "token": uuid.uuid4().hex}
        now = self._look_at_store()
        try:
            self._take(now)
            self._give_way_to_announced()
        except BaseException:
            self._give_back()
            raise
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._give_back()

    def require_held(self) -> None:
        """Refuse to go on when the lease has passed, or may have passed, to another run."""
        try:
            self._renew()
        except StorageError as error:
            logger.warning("the lease was not renewed: %s", error)
        if self._lost is not None:
            raise self._lost
        if _clock() - self._renewed > lease.LEASE_SECONDS:
            raise LeaseLost.out_of_reach(self._location)

    def _look_at_store(self) -> datetime:
        """The time by the store's clock; StoreWithoutLock where conditions are not honoured."""
        url = ObjectUrl.parse(self._storage.location(f"{FOLDER}/probe-{uuid.uuid4().hex}"))
        honoured, now = _probe(url)
        if not honoured:
            if not os.environ.get(ALLOWED):
                raise StoreWithoutLock.at(self._storage.location())
            logger.warning(
                "%s has no conditional writes: runs that overlap may go unnoticed",
                self._storage.location(),
            )
            self._object = ConditionalObject(self._object.url, guarded=False)
        return now

    def _take(self, now: datetime) -> None:
        """Write the lease where nobody holds it; of several that try, the store lets one."""
        found = None
        for _ in range(ATTEMPTS):
            found = self._object.read()
            if found is not None and _counts(found, now):
                break
            if self._write(held=True, over=None if found is None else found.version):
                return
            time.sleep(random.uniform(0.0, 0.2))
        raise lease.StoreBusy.held_by(None if found is None else _holder(found), self._location)

    def _give_way_to_announced(self) -> None:
        """Raise while a run of version 0.2 holds the store; remove what such runs left."""
        files = self._storage.files(FOLDER)
        own = next((file.modified_ns for file in files if file.name == NAME), None)
        for file in files:
            if file.name == NAME or own is None:
                continue
            if own - file.modified_ns > lease.LEASE_SECONDS * 1e9:
                self._storage.delete(file.name)
            elif not file.name.startswith(f"{FOLDER}/probe-"):
                raise lease.StoreBusy.held_by(None, self._storage.location(file.name))

    def _write(self, *, held: bool, over: Version | None) -> bool:
        """Whether it was written; no two writes have the same text, and so the same etag."""
        begun = _clock()
        self._writes += 1
        expires = time.time() + lease.LEASE_SECONDS if held else 0.0
        facts = {**self._facts, "held": held, "expires": expires, "writes": self._writes}
        version = self._object.write(json.dumps(facts, indent=2).encode(), over=over)
        if version is None:
            return False
        self._version, self._renewed = version, begun
        return True

    def _renew(self) -> None:
        with self._writing:
            for _ in range(ATTEMPTS):
                if self._lost is not None or self._write(held=True, over=self._version):
                    return
                found = self._object.read()
                if found is None or not self._is_ours(found):
                    holder = None if found is None else _holder(found)
                    self._lost = LeaseLost.to_another(self._location, holder)
                    return
                # a write that was given up as lost did arrive
                self._version = found.version

    def _keep(self) -> None:
        while self._lost is None and not self._stop.wait(lease.RENEW_SECONDS):
            try:
                self._renew()
            except PegError as error:
                logger.warning("the lease was not renewed, trying again: %s", error)
        if self._lost is not None:
            logger.warning("%s", self._lost)

    def _give_back(self) -> None:
        """Mark it as free; to delete it could hit the lease of a run that took over."""
        with self._writing:
            self._lost = self._lost or LeaseLost.given_back(self._location)
            try:
                found = self._object.read()
                if found is not None and self._is_ours(found):
                    self._write(held=False, over=found.version)
            except PegError as error:  # it expires; the run's own error matters more
                logger.warning("the lease was not given back: %s", error)

    def _is_ours(self, found: Stored) -> bool:
        holder = _holder(found)
        return holder is not None and holder.get("token") == self._facts["token"]


def current_holder(storage: Storage) -> dict[str, Any] | None:
    """Who holds the lease, as far as this machine can tell without writing anything."""
    found = ConditionalObject(ObjectUrl.parse(storage.location(NAME))).read()
    holder = None if found is None else _holder(found)
    if holder is None or not holder.get("held") or _is_dead(holder):
        return None
    return holder if _is_here(holder) or holder["expires"] > time.time() else None


def _probe(url: ObjectUrl) -> tuple[bool, datetime]:
    """Whether a store refuses what it should, and what its clock said of the last write."""
    probe = ConditionalObject(url)
    try:
        first = probe.write(b"1", over=None)
        honoured = (
            bool(first)
            and probe.write(b"2", over=first) is not None
            and probe.write(b"3", over=first) is None
            and probe.write(b"4", over=None) is None
        )
    except StorageError as error:
        if "501 Not Implemented" not in str(error):
            raise
        honoured = False
        ConditionalObject(url, guarded=False).write(b"5", over=None)
    found = probe.read()
    probe.delete()
    if found is None:
        raise StorageError(f"{url} is gone although nobody deletes it; check the store, run again")
    return honoured, found.modified


def _counts(found: Stored, now: datetime) -> bool:
    """Whether somebody holds the lease, by the store's clock where it cannot be asked here."""
    holder = _holder(found)
    if holder is not None and (not holder.get("held") or _is_dead(holder)):
        return False
    return (now - found.modified).total_seconds() < lease.LEASE_SECONDS + MARGIN_SECONDS


def _holder(found: Stored) -> dict[str, Any] | None:
    try:
        return lease.understood(json.loads(found.data))
    except ValueError:
        return None


def _is_dead(holder: dict[str, Any]) -> bool:
    """Whether it ran here, and does not any more."""
    return _is_here(holder) and not lease.is_running(holder["pid"], holder["process_started"])


def _is_here(holder: dict[str, Any]) -> bool:
    return holder["host"] == socket.gethostname() and holder.get("machine") == _machine()


@lru_cache(maxsize=1)
def _machine() -> str:
    """What two machines or containers of the same name do not share, as far as it can be had."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _clock() -> float:
    """Seconds that go on while the machine sleeps, where the system counts them."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()
