"""Finds the processes that a signal goes to."""

from __future__ import annotations

import contextlib
import os
import time

import psutil

from tests.faults.chaos.peg_run import PegRun

TASK = "ray::run_shard"
# A worker at work may be there for some milliseconds only; after this time an idle one will do.
PATIENCE_SECONDS = 2.0


def strike(run: PegRun, victim: str, number: int) -> list[str]:
    """Send the signal; returns the names of those that got it, none where the run has ended."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not run.ended():
        targets = choose_targets(run, victim, any_worker=time.monotonic() > deadline)
        struck = [name for process in targets if (name := _send(process, number))]
        if struck:
            return struck
    return []


def choose_targets(run: PegRun, victim: str, *, any_worker: bool) -> list[psutil.Process]:
    """The processes of the run that are meant, as far as they are there yet."""
    if victim == "driver":
        return _named(run.pid)
    processes = run.processes()
    if victim == "session":
        return processes
    if victim == "group":
        return [process for process in processes if _group(process) == run.pid]
    names = {process: _name(process) for process in processes}
    if victim == "worker":
        at_work = [process for process, name in names.items() if name.startswith(TASK)]
        idle = [process for process, name in names.items() if name == "ray::IDLE"]
        return at_work[:1] or (idle[:1] if any_worker else [])
    return [process for process, name in names.items() if name == victim]


def _named(number: int) -> list[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return [psutil.Process(number)]
    return []


def _name(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.name()
    return ""


def _group(process: psutil.Process) -> int | None:
    with contextlib.suppress(ProcessLookupError):
        return os.getpgid(process.pid)
    return None


def _send(process: psutil.Process, number: int) -> str:
    name = _name(process)
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return ""
    return name
