"""One writer per store: a locked file that says who writes.

The lock belongs to the open file (flock): one process has it, and the kernel takes it back when
that process ends in whatever way, so that nothing stale has to be found and removed. The text of
the file is for people, and for machines whose locks do not reach each other: there the lease of
another machine counts until it expires.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import socket
import threading
import time
import uuid
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from peg_core.errors import PegError

LEASE_NAME = "lease.json"
LEASE_SECONDS = 60.0
RENEW_SECONDS = 10.0
LEASE_BYTES = 1024  # one size, so that a renewal is never read in part
TAKE_OVER_SECONDS = 5.0  # what the kernel may need to end a process and give its lock back
NUMBERS = ("pid", "process_started", "started", "expires")
logger = logging.getLogger(__name__)


class StoreBusy(PegError):
    """Another run holds the store."""

    @classmethod
    def held_by(cls, holder: dict[str, Any] | None, path: Path | str) -> Self:
        if holder is None:
            return cls(f"the store is in use by another process, which holds {path}; wait for it")
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(holder["started"]))
        return cls(
            f"the store has been in use by process {holder['pid']} on {holder['host']} since "
            f"{since}; wait for it to end, or, if it is gone, for its lease {path} to expire "
            f"({LEASE_SECONDS:.0f} s)"
        )


class Lease:
    """Held for the time of a run; ``with Lease(store_root): ...``."""

    def __init__(self, root: Path) -> None:
        self.path = root / LEASE_NAME
        self._file = -1
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True)
        self._holder: dict[str, Any] = {}

    def __enter__(self) -> Self:
        self._file = self._lock()
        try:
            holder = read_holder(self.path)
            if holder is not None and _is_elsewhere(holder) and is_alive(holder):
                raise StoreBusy.held_by(holder, self.path)
            self._holder = {**own_facts(), "token": uuid.uuid4().hex}
            self._write()
        except BaseException:
            os.close(self._file)
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
        if self._is_ours():
            self.path.unlink(missing_ok=True)
        os.close(self._file)

    def _lock(self) -> int:
        """The open, locked file; opened again where its last holder removed it meanwhile."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        deadline = time.monotonic() + TAKE_OVER_SECONDS
        while True:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_at(self.path, file):
                    return file
            except BlockingIOError:
                holder = read_holder(self.path)
                if holder is None or is_alive(holder) or time.monotonic() > deadline:
                    os.close(file)
                    raise StoreBusy.held_by(holder, self.path) from None
                time.sleep(0.02)  # it ended just now
            except OSError as error:
                os.close(file)
                raise PegError(
                    f"{self.path} cannot be locked ({error.strerror}): two runs could write at a "
                    "time; put the store on a file system with file locks, or use an object store"
                ) from error
            os.close(file)

    def _write(self) -> None:
        text = json.dumps({**self._holder, "expires": time.time() + LEASE_SECONDS})
        os.pwrite(self._file, text.encode().ljust(LEASE_BYTES), 0)
        os.ftruncate(self._file, LEASE_BYTES)

    def _is_ours(self) -> bool:
        """False where another machine, which does not see the lock, took over."""
        holder = read_holder(self.path)
        return holder is not None and holder.get("token") == self._holder["token"]

    def _renew(self) -> None:
        while not self._stop.wait(RENEW_SECONDS):
            try:
                if self._is_ours():
                    self._write()
                else:
                    logger.warning("the lease %s is no longer ours", self.path)
            except OSError as error:  # the lock is still held
                logger.warning("the lease %s was not renewed: %s", self.path, error)


def own_facts() -> dict[str, Any]:
    """What tells this process from others."""
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "process_started": psutil.Process().create_time(),
        "started": time.time(),
    }


def read_holder(path: Path) -> dict[str, Any] | None:
    """Who holds the lease; None where nobody does, or where the text says nothing."""
    try:
        return understood(json.loads(path.read_bytes()))
    except (OSError, ValueError):
        return None


def understood(holder: Any) -> dict[str, Any] | None:
    """The text of a lease, if it has what a lease needs."""
    if not isinstance(holder, dict) or not isinstance(holder.get("host"), str):
        return None
    numbers = [holder.get(name) for name in NUMBERS]
    return holder if all(type(number) in (int, float) for number in numbers) else None


def is_alive(holder: dict[str, Any]) -> bool:
    """On this machine the process is asked; elsewhere the expiry decides."""
    if _is_elsewhere(holder):
        expires: float = holder["expires"]
        return expires > time.time()
    return is_running(holder["pid"], holder["process_started"])


def is_running(pid: int, started: float) -> bool:
    """Whether that very process runs; one that ended and that nobody waited for does not."""
    try:
        process = psutil.Process(pid)
        same = abs(process.create_time() - started) < 1.0
        return same and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.NoSuchProcess, ValueError, OverflowError):
        return False


def _is_elsewhere(holder: dict[str, Any]) -> bool:
    return bool(holder["host"] != socket.gethostname())


def _is_at(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file))
    except FileNotFoundError:
        return False
