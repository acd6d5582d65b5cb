import shutil
import signal
import subprocess
import sys

import psutil
import pytest

from workers.local_ray.vital_parts import VitalParts


@pytest.fixture
def raylet(tmp_path):
    """A child that is called like a part of Ray."""
    program = shutil.copy(shutil.which("sleep"), tmp_path / "raylet")
    child = subprocess.Popen([program, "600"])
    yield child
    child.kill()
    child.wait()


def test_a_part_that_was_killed_is_named_with_its_exit_code(raylet):
    parts = VitalParts()
    parts.look()
    assert parts.first_ended() is None
    raylet.send_signal(signal.SIGKILL)
    while (ended := parts.first_ended()) is None:
        continue
    assert ended == ("raylet", -signal.SIGKILL)
    # Ray asks for the exit code of its child too
    assert raylet.wait() == -signal.SIGKILL
    assert parts.first_ended() == ("raylet", None)


def test_a_part_that_had_ended_before_is_another_runs(raylet):
    raylet.kill()
    while psutil.Process(raylet.pid).status() != psutil.STATUS_ZOMBIE:
        continue
    parts = VitalParts()
    parts.look()
    assert parts.first_ended() is None


BLOCKED = """
import subprocess, sys, time
from workers.local_ray import vital_parts
vital_parts.LOOK_SECONDS = vital_parts.GRACE_SECONDS = 0.1
watch = vital_parts.VitalWatch(lambda part, code: f"{part} ended with {code}")
watch.start()
child = subprocess.Popen([sys.argv[1], "600"])
if sys.argv[2] == "late":  # it is gone before anybody looked
    child.kill()
while not watch.parts._parts:
    time.sleep(0.01)
if sys.argv[2] == "over":
    watch.stop()
if sys.argv[2] != "late":
    child.kill()
time.sleep(1 if sys.argv[2] == "over" else 600)
"""


@pytest.mark.parametrize(
    ("state", "code", "told"),
    [
        ("blocked", 1, "error: raylet ended with -9\n"),
        ("late", 1, "error: raylet ended with -9\n"),
        ("over", 0, ""),
    ],
)
def test_a_process_that_waits_for_a_lost_part_ends_with_a_word(tmp_path, state, code, told):
    program = shutil.copy(shutil.which("sleep"), tmp_path / "raylet")
    command = [sys.executable, "-c", BLOCKED, program, state]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (code, told)
