"""One writer per store: a lease with expiry, renewed while its holder lives."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from peg_core.atomic_file import write_json
from peg_core.errors import PegError

LEASE_SECONDS = 60.0
RENEW_SECONDS = 10.0


class StoreBusy(PegError):
    """Another run holds the store."""

    @classmethod
    def held_by(cls, holder: dict[str, Any], path: Path | str) -> Self:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(holder["started"]))
        return cls(
            f"the store has been in use by process {holder['pid']} on {holder['host']} since "
            f"{since}; wait for it to end, or, if it is gone, for its lease {path} to expire "
            f"({LEASE_SECONDS:.0f} s)"
        )


class Lease:
    """Held for the time of a run; ``with Lease(store_root): ...``."""

    def __init__(self, root: Path) -> None:
        self.path = root / "lease.json"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True)
        self._holder: dict[str, Any] = {}

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._holder = {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "process_started": psutil.Process().create_time(),
            "started": time.time(),
            "expires": time.time() + LEASE_SECONDS,
        }
        while not self._create():
            holder = read_holder(self.path)
            if holder is not None and is_alive(holder):
                raise StoreBusy.held_by(holder, self.path)
            self._remove_stale()
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
        self.path.unlink(missing_ok=True)

    def _create(self) -> bool:
        """Create the file together with its content; False when it exists."""
        draft = self.path.with_name(f".lease.{os.getpid()}.{threading.get_ident()}")
        draft.write_text(json.dumps(self._holder))
        try:
            os.link(draft, self.path)
        except FileExistsError:
            return False
        finally:
            draft.unlink()
        return True

    def _remove_stale(self) -> None:
        """Rename first: of several that found the lease stale, one succeeds."""
        grave = self.path.with_name(f".lease.stale.{os.getpid()}")
        try:
            self.path.rename(grave)
        except FileNotFoundError:
            return
        grave.unlink(missing_ok=True)

    def _renew(self) -> None:
        while not self._stop.wait(RENEW_SECONDS):
            write_json(self.path, {**self._holder, "expires": time.time() + LEASE_SECONDS})


def read_holder(path: Path) -> dict[str, Any] | None:
    """Who holds the lease, or None."""
    try:
        holder: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    return holder


def is_alive(holder: dict[str, Any]) -> bool:
    """On this machine the process is asked; elsewhere the expiry decides."""
    if holder["host"] == socket.gethostname():
        try:
            process = psutil.Process(holder["pid"])
        except psutil.NoSuchProcess:
            return False
        started: float = holder["process_started"]
        return abs(process.create_time() - started) < 1.0
    expires: float = holder["expires"]
    return expires > time.time()
