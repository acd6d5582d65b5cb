"""One `peg run` in a session of its own: its events, its processes and its end."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil

from tests.faults.chaos.small_pipeline import peg_command

FIRST_EVENTS = ("stage_started", "stage_reused")


class PegRun:
    """A run that was started.

    Its processes share a session, which Ray does not leave, so that they can be told from
    those of other runs even when the driver is gone.

    Args:
        folder: Of the trial; temporary files go below it.
        number: Of this run among those of the trial.
    """

    def __init__(
        self, config: Path, store: str, folder: Path, environment: dict[str, str], number: int
    ) -> None:
        self.output_file = folder / f"output-{number}.txt"
        self.started = time.monotonic()
        with self.output_file.open("w") as output:
            self.process = subprocess.Popen(
                peg_command("run", config, "--set", f"store={store}", "--events"),
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pid = self.process.pid
        self.first_stage_seconds: float | None = None

    @property
    def output(self) -> str:
        return self.output_file.read_text(errors="replace")

    def events(self) -> list[dict[str, Any]]:
        """What the run told so far."""
        found = []
        for line in self.output.splitlines():
            if line.startswith('{"time"'):
                with contextlib.suppress(json.JSONDecodeError):  # not yet written to its end
                    found.append(json.loads(line))
        if self.first_stage_seconds is None and any(e["event"] in FIRST_EVENTS for e in found):
            self.first_stage_seconds = time.monotonic() - self.started
        return found

    def ended(self) -> bool:
        return self.process.poll() is not None

    def wait(self, timeout_seconds: float) -> int | None:
        """The exit code, or None when the run is still there after the time."""
        deadline = time.monotonic() + timeout_seconds
        while not self.ended() and time.monotonic() < deadline:
            if self.first_stage_seconds is None:
                self.events()
            time.sleep(0.02)
        self.events()
        return self.process.poll()

    def processes(self) -> list[psutil.Process]:
        """Those alive, the driver first."""
        return processes_of_session(self.pid)


def processes_of_session(session: int) -> list[psutil.Process]:
    """Processes of a session that are alive, in the order of their numbers."""
    found = []
    for number in psutil.pids():
        with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
            if os.getsid(number) == session:
                process = psutil.Process(number)
                if process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
    return found
