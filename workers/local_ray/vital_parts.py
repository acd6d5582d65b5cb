"""The processes of a local Ray that nothing works without."""

from __future__ import annotations

import os

import psutil

VITAL_PARTS = ("gcs_server", "raylet")


class VitalParts:
    """Those that this process has started; made right after Ray's start."""

    def __init__(self) -> None:
        self._parts: dict[str, psutil.Process] = {}
        for child in psutil.Process().children():
            if child.name() in VITAL_PARTS and not _has_ended(child):
                self._parts[child.name()] = child

    def first_ended(self) -> tuple[str, int | None] | None:
        """One that has ended, with its exit code where that is known; None while all run."""
        for name, process in self._parts.items():
            if _has_ended(process):
                return name, _exit_code(process.pid)
        return None


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
