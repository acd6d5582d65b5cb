"""The processes of a local Ray that nothing works without."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import psutil

VITAL_PARTS = ("gcs_server", "raylet")
LOOK_SECONDS = 1.0
# While Ray starts: a part may be gone a moment after it came.
START_LOOK_SECONDS = 0.1
# Whoever waits for tasks notices within a second; after this long nobody will.
GRACE_SECONDS = 15.0


class VitalParts:
    """Those that this process starts, as far as it has looked; not those that had ended before."""

    def __init__(self) -> None:
        self._parts: dict[str, psutil.Process] = {}
        self._ended_before = {p.pid for p in psutil.Process().children() if _has_ended(p)}

    @property
    def complete(self) -> bool:
        """Whether all have been seen."""
        return len(self._parts) == len(VITAL_PARTS)

    def look(self) -> None:
        """Find those that were not there before."""
        for child in psutil.Process().children():
            with suppress(psutil.NoSuchProcess):
                name = child.name()
                if name in VITAL_PARTS and child.pid not in self._ended_before:
                    self._parts.setdefault(name, child)

    def first_ended(self) -> tuple[str, int | None] | None:
        """One that has ended, with its exit code where that is known; None while all run."""
        for name, process in list(self._parts.items()):
            if _has_ended(process):
                return name, _exit_code(process.pid)
        return None


class VitalWatch:
    """Ends this process with a word of ours where Ray would end it without one.

    A call that waits for a part of Ray which is gone comes back only to end the process, a
    minute later: no exception can tell of it.

    Args:
        explain: A sentence on a part that ended with an exit code.
    """

    def __init__(self, explain: Callable[[str, int | None], object]) -> None:
        self.parts = VitalParts()
        self._explain = explain
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="vital parts", daemon=True)

    def start(self) -> None:
        """Watch until :meth:`stop`; best before Ray starts."""
        self._thread.start()

    def stop(self) -> None:
        """Parts may end from now on."""
        self._over.set()

    def _watch(self) -> None:
        first_seen: float | None = None
        while not self._over.wait(LOOK_SECONDS if self.parts.complete else START_LOOK_SECONDS):
            self.parts.look()
            ended = self.parts.first_ended()
            if ended is None:
                continue
            first_seen = first_seen or time.monotonic()
            if time.monotonic() - first_seen > GRACE_SECONDS:
                os.write(2, f"error: {self._explain(*ended)}\n".encode())
                os._exit(1)


def _has_ended(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def _exit_code(pid: int) -> int | None:
    """Of a child that has ended; the child is left to Ray, which will ask for it too."""
    try:
        found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except (AttributeError, OSError):  # not on every system, or somebody asked before
        return None
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
