"""How a tick runs: as a process next to the daemon, or as a job on a Ray cluster."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import psutil

from peg_core.errors import PegError
from peg_core.object_url import is_url
from pipeline.run.run_log import FOLDER as LOGS
from pipeline.run.run_log import RUN_ID, read_run_log
from pipeline.schedule.schedule import Schedule
from pipeline.schedule.tick import Tick

if TYPE_CHECKING:
    from workers.jobs.job_client import JobClient

INTERRUPTED = 130


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended."""

    exit_code: int
    reason: str = ""


class TickLauncher(Protocol):
    """Starts the attempt of a tick and reports how it goes."""

    def start(self, schedule: Schedule, tick: Tick) -> Tick:
        """The tick with what is needed to find it again; starts nothing that runs already."""
        ...

    def outcome(self, tick: Tick) -> Outcome | None:
        """How it ended; None while it runs."""
        ...

    def stop(self, tick: Tick) -> None:
        """Ask it to end."""
        ...


class ProcessLauncher:
    """``peg run`` in a process that outlives the daemon."""

    def __init__(self, store: str) -> None:
        self._store = store
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, schedule: Schedule, tick: Tick) -> Tick:
        running = _find_process(tick.submission_id)
        if running is not None:  # the daemon ended between the start and its record
            return _with_process(tick, running)
        if read_run_log(self._store, tick.submission_id):  # and the run ended meanwhile
            return tick
        command = [sys.executable, "-m", "pipeline", "run", schedule.config]
        command += ["--refresh"] if schedule.mode == "refresh" else []
        command += [part for item in schedule.overrides for part in ("--set", item)]
        with self._output(tick).open("wb") as output:
            child = subprocess.Popen(
                command,
                cwd=schedule.folder,
                env={**os.environ, RUN_ID: tick.submission_id},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._children[tick.submission_id] = child
        return _with_process(tick, psutil.Process(child.pid))

    def outcome(self, tick: Tick) -> Outcome | None:
        child = self._children.get(tick.submission_id)
        if child is not None:
            code = child.poll()
            if code is None:
                return None
            del self._children[tick.submission_id]
            return Outcome(code if code >= 0 else 128 - code, self._last_words(tick, code))
        if _is_running(tick):
            return None
        return self._outcome_of_log(tick)

    def stop(self, tick: Tick) -> None:
        if tick.pid is not None and _is_running(tick):
            os.kill(tick.pid, signal.SIGTERM)

    def _outcome_of_log(self, tick: Tick) -> Outcome:
        """How a run ended whose exit code nobody saw."""
        events = read_run_log(self._store, tick.submission_id)
        last = events[-1] if events else {"event": "nothing"}
        if last["event"] == "run_finished":
            return Outcome(0)
        if last["event"] == "run_failed":
            code = INTERRUPTED if last["outcome"] == "interrupted" else 1
            return Outcome(code, last["message"])
        return Outcome(1, f"the run ended without a message; see {self._output(tick)}")

    def _last_words(self, tick: Tick, code: int) -> str:
        if code == 0:
            return ""
        lines = self._output(tick).read_text(errors="replace").splitlines()
        return next((line for line in reversed(lines) if line.strip()), "no output")

    def _output(self, tick: Tick) -> Path:
        folder = Path(tempfile.gettempdir()) if is_url(self._store) else Path(self._store) / LOGS
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{tick.submission_id}.out"


class JobLauncher:
    """A job on the cluster of the schedule."""

    def __init__(self) -> None:
        self._clients: dict[str, JobClient] = {}

    def start(self, schedule: Schedule, tick: Tick) -> Tick:
        from pipeline.run.job_submission import Submission
        from workers.jobs.job_client import JobExists

        submission = Submission(
            config=Path(schedule.config),
            overrides=schedule.overrides,
            working_dir=Path(schedule.working_dir) if schedule.working_dir else None,
            base=Path(schedule.folder),
            label=tick.due,
            mode=schedule.mode,
            with_package=schedule.with_package,
        )
        job = submission.job(submission.load(), submission_id=tick.submission_id)
        # a job that exists: the daemon ended between the submission and its record
        with self._client(tick) as client, suppress(JobExists):
            client.submit(job)
        return tick

    def outcome(self, tick: Tick) -> Outcome | None:
        with self._client(tick) as client:
            job = client.find(tick.submission_id)
        if job is None:
            return Outcome(1, f"{tick.address} no longer knows the job; was it restarted?")
        if not job.is_finished:
            return None
        return Outcome(job.exit_code, "" if job.exit_code == 0 else _first_line(job.message))

    def stop(self, tick: Tick) -> None:
        with self._client(tick) as client:
            client.request_stop(tick.submission_id)

    @contextmanager
    def _client(self, tick: Tick) -> Iterator[JobClient]:
        """The client of the tick's cluster; after an error the next call opens a new one."""
        from workers.jobs.job_client import JobClient

        address = tick.address or ""
        if address not in self._clients:
            self._clients[address] = JobClient(address)
        try:
            yield self._clients[address]
        except PegError:
            self._clients.pop(address, None)
            raise


def default_launchers(store: str) -> Callable[[Tick], TickLauncher]:
    """A process for ticks without an address, a job for the others."""
    process, job = ProcessLauncher(store), JobLauncher()

    def choose(tick: Tick) -> TickLauncher:
        return process if tick.address is None else job

    return choose


def _first_line(text: str) -> str:
    return text.partition("\n")[0].partition(", last available logs")[0]


def _with_process(tick: Tick, process: psutil.Process) -> Tick:
    try:
        started = process.create_time()
    except psutil.NoSuchProcess:
        started = None
    return tick.change(pid=process.pid, process_started=started)


def _is_running(tick: Tick) -> bool:
    if tick.pid is None:
        return _find_process(tick.submission_id) is not None
    try:
        process = psutil.Process(tick.pid)
        same = abs(process.create_time() - (tick.process_started or 0)) < 1.0
        return same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _find_process(run: str) -> psutil.Process | None:
    """The process that runs under this id, if there is one on this machine."""
    for process in psutil.process_iter():
        try:
            # processes that the run started, such as Ray's, have its variables too
            is_run = process.cmdline()[1:4] == ["-m", "pipeline", "run"]
            if is_run and process.environ().get(RUN_ID) == run:
                return process
        except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
            continue
    return None
