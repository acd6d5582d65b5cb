"""Processes that are real, and dead in different ways."""

import os
import subprocess
import sys
import time

import psutil
import pytest

from pipeline.schedule.launcher import ProcessLauncher
from pipeline.schedule.tick import Tick, TickState


def tick_of(pid):
    started = psutil.Process(pid).create_time()
    return Tick("a", "20260101T000000Z", "a-20260101T000000Z-0", state=TickState.RUNNING,
                pid=pid, process_started=started)  # fmt: skip


@pytest.fixture
def zombie():
    """A child that has ended and that its parent, which is not the launcher, never asked."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    tick = tick_of(child.pid)
    child.stdin.close()
    while psutil.Process(child.pid).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    yield tick
    child.wait()


def test_a_zombie_has_ended(tmp_path, zombie):
    outcome = ProcessLauncher(str(tmp_path)).outcome(zombie)
    assert outcome is not None
    assert outcome.exit_code == 1
    assert "ended without a message" in outcome.reason


def test_a_process_of_another_daemon_runs_until_it_ends(tmp_path):
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    tick = tick_of(child.pid)
    launcher = ProcessLauncher(str(tmp_path))
    assert launcher.outcome(tick) is None
    later = tick.change(process_started=tick.process_started - 100)
    assert launcher.outcome(later) is not None, "another process got the number"
    child.communicate(b"\n")
    assert launcher.outcome(tick) is not None


def test_stopping_what_has_just_ended_is_no_error(tmp_path, monkeypatch):
    def gone(_pid, _signal):
        raise ProcessLookupError

    monkeypatch.setattr(os, "kill", gone)
    ProcessLauncher(str(tmp_path)).stop(tick_of(os.getpid()))


def test_a_lost_output_file_does_not_hide_how_a_run_ended(tmp_path):
    launcher = ProcessLauncher(str(tmp_path))
    child = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
    tick = tick_of(child.pid)
    launcher._children[tick.submission_id] = child
    child.wait()
    outcome = launcher.outcome(tick)
    assert (outcome.exit_code, outcome.reason) == (3, "no output")
