"""One writer per remote store: every run writes its own object, the lowest name wins.

pyarrow.fs has no conditional write, so a run announces itself, waits for others that
may have done the same, and looks. docs/decisions/0016-remote-stores.md says what this
does and does not guarantee.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import uuid
from types import TracebackType
from typing import Any, Self

import psutil

from peg_core.errors import PegError
from pipeline.store import lease
from pipeline.store.object_storage import Storage

FOLDER = "lease"
SETTLE_SECONDS = 2.0
LEASE_BYTES = 1024  # one size, so that a renewal is never read in part
logger = logging.getLogger(__name__)


class RemoteLease:
    """Held for the time of a run; ``with RemoteLease(storage): ...``."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.name = f"{FOLDER}/{time.time_ns():020}-{uuid.uuid4().hex}.json"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True)
        self._renewed = 0.0
        self._holder: dict[str, Any] = {}

    def __enter__(self) -> Self:
        self._holder = {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "process_started": psutil.Process().create_time(),
            "started": time.time(),
            "held": False,
        }
        self._write()
        try:
            time.sleep(SETTLE_SECONDS)
            self._require_first()
            self._holder["held"] = True
            self._write()
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
        """Refuse to go on when the lease may have passed to another run."""
        if time.monotonic() - self._renewed > lease.LEASE_SECONDS:
            raise PegError(
                f"the lease on {self._storage.location()} could not be renewed for "
                f"{lease.LEASE_SECONDS:.0f} s, another run may hold the store by now; check the "
                "network and run again: finished work is kept"
            )

    def _require_first(self) -> None:
        """Raise when another live run holds the store or announced itself before this one."""
        others = live_runs(self._storage, own=self.name)
        for name, holder in others.items():
            if holder["held"] or name < self.name:
                raise lease.StoreBusy.held_by(holder, self._storage.location(name))
        for file in self._storage.files(FOLDER):
            if file.name != self.name and file.name not in others:
                self._storage.delete(file.name)

    def _write(self) -> None:
        begun = time.monotonic()
        expires = time.time() + lease.LEASE_SECONDS
        self._storage.write_json(
            self.name, {**self._holder, "expires": expires}, pad_to=LEASE_BYTES
        )
        self._renewed = begun

    def _renew(self) -> None:
        while not self._stop.wait(lease.RENEW_SECONDS):
            try:
                self._write()
            except PegError as error:
                logger.warning("the lease was not renewed, trying again: %s", error)

    def _give_back(self) -> None:
        try:
            self._storage.delete(self.name)
        except PegError as error:  # it expires; the run's own error matters more
            logger.warning("the lease was not given back: %s", error)


def live_runs(storage: Storage, *, own: str | None = None) -> dict[str, dict[str, Any]]:
    """Runs that announced themselves and are alive, by the name of their object.

    Where there is an own object the store's clock decides, else this machine's.
    """
    files = {file.name: file for file in storage.files(FOLDER)}
    found = {}
    for name, file in files.items():
        holder = storage.read_json(name) if name != own else None
        if holder is None:
            continue
        if own in files and holder["host"] != socket.gethostname():
            behind = (files[own].modified_ns - file.modified_ns) / 1e9
            alive = behind < lease.LEASE_SECONDS
        else:
            alive = lease.is_alive(holder)
        if alive:
            found[name] = holder
    return found
