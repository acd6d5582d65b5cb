"""Carries out one trial: a run is struck, started again and compared with the undisturbed one."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.faults.chaos.peg_run import PegRun
from tests.faults.chaos.results import differences, read_results, store_leftovers
from tests.faults.chaos.trial_choice import END, START, Trial
from tests.faults.chaos.trial_store import TrialStore
from tests.faults.chaos.victim import strike
from tests.faults.chaos.workshop import Undisturbed, Workshop

# With a copied store Ray starts in the stage itself.
RAY_START_SECONDS = 3.0
SURVIVE_SECONDS = 240.0
RERUNS = 3
VANISH_SECONDS = 90
RERUN_VANISH_SECONDS = 20.0
INTERRUPTED = 130
# A driver that got one of these itself cannot say anything any more.
SILENT = {"KILL", "HUP"}
# What the last line of a run begins with: all is written, and only Python is left to end.
LAST_WORDS = "\n  peg plan "


@dataclass
class Outcome:
    """What became of a trial.

    Args:
        hit: The stage that was under way when the signal came.
        delay_seconds: Time between the beginning of the stage and the signal.
        block_seconds: From the first rerun's start to the first stage of the one that succeeded.
        linger_seconds: How long processes of the run outlived its driver.
    """

    trial: Trial
    folder: Path
    hit: str = ""
    delay_seconds: float = 0.0
    text: str = ""
    success: bool = False
    mismatches: list[str] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)
    block_seconds: float = 0.0
    linger_seconds: float = 0.0
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        return self.success and not self.mismatches and not self.leftovers


def carry_out(trial: Trial, workshop: Workshop) -> Outcome:
    """Strike, start again, compare; a run that ended too early is struck sooner."""
    begun = time.monotonic()
    for attempt, tried in enumerate(_sooner(trial)):
        folder = workshop.folder / f"{trial.number}{'abc'[attempt]}"
        folder.mkdir()
        outcome = Outcome(tried, folder)
        runs: list[PegRun] = []
        try:
            hit = _carry_out(tried, workshop, outcome, runs)
        finally:
            end_processes(_alive(runs))
        if hit:
            break
    else:
        outcome.text = "the run ended before the signal"
    outcome.seconds = time.monotonic() - begun
    return outcome


def _sooner(trial: Trial) -> list[Trial]:
    """The trial, and what is tried when its run ends before the signal."""
    return [
        trial,
        dataclasses.replace(trial, moment=trial.moment / 4),
        dataclasses.replace(trial, moment=0.0, victim="driver"),
    ]


def _carry_out(trial: Trial, workshop: Workshop, outcome: Outcome, runs: list[PegRun]) -> bool:
    """Fills the outcome; False when the run ended before the signal."""
    undisturbed = workshop.undisturbed[trial.store]
    store = workshop.new_store(trial.store, outcome.folder)
    if trial.copied:
        undisturbed.store.copy_to(store, without=_from(trial.stage, undisturbed.stages))
    run = workshop.start(store, outcome.folder, 1)
    runs.append(run)
    outcome.delay_seconds = _wait_for_moment(run, trial, undisturbed)
    outcome.hit = _under_way(run)
    if not strike(run, trial.victim, signal.Signals[f"SIG{trial.signal}"]):
        return False
    code = run.wait(SURVIVE_SECONDS)
    gone = Disappearance(run)
    outcome.text = describe_end(trial, code, run.output)
    outcome.success = not outcome.text.startswith("unclear") and code is not None
    if code is None:
        end_processes(run.processes())
    finished = code == 0 or _run_again(workshop, store, outcome, runs)
    outcome.success = outcome.success and finished
    outcome.leftovers += [f"process {name}" for name in wait_until_gone(runs, gone.deadline)]
    outcome.linger_seconds = gone.seconds()
    folder = store.as_folder(outcome.folder / "copy")
    if finished:  # else there is nothing to compare
        outcome.leftovers += store_leftovers(folder)
        outcome.mismatches = differences(undisturbed.results, read_results(folder))
    return True


def _from(stage: str, stages: Sequence[str]) -> list[str]:
    return [] if stage == END else list(stages[stages.index(stage) :])


def _wait_for_moment(run: PegRun, trial: Trial, undisturbed: Undisturbed) -> float:
    """Sleep until the signal is due; returns the seconds since the stage began."""
    if trial.stage == START:
        begun = run.started
    else:
        begun = _wait_for_stage(run, trial.stage, undisturbed.stages[-1])
    length = undisturbed.seconds[trial.stage]
    if trial.copied and trial.stage != END:
        length += RAY_START_SECONDS
    due = begun + trial.moment * length
    while time.monotonic() < due and not run.ended():
        time.sleep(0.001)
    return time.monotonic() - begun


def _wait_for_stage(run: PegRun, stage: str, last: str) -> float:
    """The time at which the run was seen to begin the stage, or to be past the last one."""
    if stage == END:
        wanted = {("stage_finished", last), ("stage_reused", last)}
    else:
        wanted = {("stage_started", stage)}
    while not run.ended():
        if any((event["event"], event.get("stage")) in wanted for event in run.events()):
            break
        time.sleep(0.002)
    return time.monotonic()


def _under_way(run: PegRun) -> str:
    """The stage that began last, or what is before and after the stages."""
    events = [event for event in run.events() if "stage" in event]
    if not events:
        return START
    if events[-1]["stage"] == "report" and events[-1]["event"] != "stage_started":
        return END
    return str(events[-1]["stage"])


def describe_end(trial: Trial, code: int | None, output: str) -> str:
    """How the struck run ended; "unclear ..." where a user would not know what to do."""
    if code is None:
        return f"unclear: still there after {SURVIVE_SECONDS:.0f} s"
    if code == 0:
        return "survived"
    struck = trial.victim in ("driver", "group", "session")
    if struck and code == -signal.Signals[f"SIG{trial.signal}"]:
        # without a handler yet, one that cannot be handled, or after the last words
        silent = trial.signal in SILENT or trial.stage == START or LAST_WORDS in output
        return "killed" if silent else f"unclear: died of SIG{trial.signal}"
    if struck and trial.stage == START:
        return "killed"  # while Python was importing
    if "Traceback" in output:
        return f"unclear: traceback, exit {code}"
    if code == INTERRUPTED and "finished work is kept" in output:
        return "stopped"
    return f"error, exit {code}" if "error:" in output else f"unclear: no message, exit {code}"


def _run_again(workshop: Workshop, store: TrialStore, outcome: Outcome, runs: list[PegRun]) -> bool:
    """Start the same command until it succeeds; at once, while remains may still be there."""
    first = time.monotonic()
    for number in range(2, 2 + RERUNS):
        run = workshop.start(store, outcome.folder, number)
        runs.append(run)
        code = run.wait(SURVIVE_SECONDS)
        if code == 0:
            reached = run.started - first + (run.first_stage_seconds or 0.0)
            outcome.block_seconds = reached
            outcome.text += "" if number == 2 else f", {number - 1} reruns"
            return True
        if code is None:
            end_processes(run.processes())
    outcome.text += f", {RERUNS} reruns failed"
    return False


def wait_until_gone(runs: Sequence[PegRun], deadline: float) -> list[str]:
    """Names of the processes that are still there at the deadline; each run gets some time."""
    deadline = max(deadline, time.monotonic() + RERUN_VANISH_SECONDS)
    while (alive := _alive(runs)) and time.monotonic() < deadline:
        time.sleep(0.2)
    return [_describe(process) for process in alive]


class Disappearance:
    """Watches how long processes of a run outlive its driver, while the rerun is under way."""

    def __init__(self, run: PegRun) -> None:
        self._begun = time.monotonic()
        self.deadline = self._begun + VANISH_SECONDS
        self._seconds = VANISH_SECONDS
        self._thread = threading.Thread(target=self._watch, args=(run,), daemon=True)
        self._thread.start()

    def seconds(self) -> float:
        self._thread.join()
        return self._seconds

    def _watch(self, run: PegRun) -> None:
        while time.monotonic() < self.deadline:
            if not run.processes():
                self._seconds = time.monotonic() - self._begun
                return
            time.sleep(0.2)


def _describe(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.NoSuchProcess):
        return f"{process.pid} {process.name()}"
    return str(process.pid)


def _alive(runs: Sequence[PegRun]) -> list[psutil.Process]:
    return [process for run in runs for process in run.processes()]


def end_processes(processes: Sequence[psutil.Process]) -> None:
    """Kill what is left of a run of this trial, so that it does not disturb the next one."""
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
