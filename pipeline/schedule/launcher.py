"""How a tick runs: as a process next to the daemon, or as a job on a Ray cluster."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import psutil

from peg_core.errors import PegError
from pipeline.run.run_log import RUN_ID, read_run_log
from pipeline.schedule.output_file import last_line, open_output, output_path
from pipeline.schedule.schedule import Schedule
from pipeline.schedule.tick import Tick

if TYPE_CHECKING:
    from pipeline.run.job_submission import Submission
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
        command += ["--cluster", schedule.cluster_file] if schedule.cluster_file else []
        with open_output(self._store, tick.submission_id) as output:
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
            reason = "" if code == 0 else last_line(self._output(tick)) or "no output"
            return Outcome(code if code >= 0 else 128 - code, reason)
        if _is_running(tick):
            return None
        return self._outcome_of_log(tick)

    def stop(self, tick: Tick) -> None:
        if tick.pid is not None and _is_running(tick):
            with suppress(ProcessLookupError):  # it ended in between
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

    def _output(self, tick: Tick) -> Path:
        return output_path(self._store, tick.submission_id)


class JobLauncher:
    """A job on the cluster of the schedule."""

    def __init__(self) -> None:
        self._clients: dict[str, JobClient] = {}

    def start(self, schedule: Schedule, tick: Tick) -> Tick:
        from workers.jobs.job_client import JobExists

        submission = submission_of(schedule, label=tick.due)
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


def submission_of(schedule: Schedule, *, label: str | None = None) -> Submission:
    """What a tick of the schedule submits."""
    from pipeline.run.job_submission import Submission

    return Submission(
        config=Path(schedule.config),
        overrides=schedule.overrides,
        working_dir=_path(schedule.working_dir),
        base=Path(schedule.folder),
        cluster_file=_path(schedule.cluster_file),
        label=label,
        mode=schedule.mode,
        with_package=schedule.with_package,
        environment=schedule.environment,
        driver_cpus=schedule.driver_cpus,
        driver_memory_bytes=schedule.driver_memory_bytes,
        pip=schedule.pip,
        image=schedule.image,
        runtime_env_file=_path(schedule.runtime_env_file),
        shared_paths=schedule.shared_paths,
    )


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None


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
        return same and not _has_ended(process)
    except psutil.NoSuchProcess:
        return False


def _has_ended(process: psutil.Process) -> bool:
    """A zombie has ended; only its parent, which need not be the daemon, has not asked yet."""
    return process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)


def _find_process(run: str) -> psutil.Process | None:
    """The process that runs under this id, if there is one on this machine."""
    for process in psutil.process_iter():
        try:
            # processes that the run started, such as Ray's, have its variables too
            is_run = process.cmdline()[1:4] == ["-m", "pipeline", "run"]
            if is_run and process.environ().get(RUN_ID) == run and not _has_ended(process):
                return process
        except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
            continue
    return None
