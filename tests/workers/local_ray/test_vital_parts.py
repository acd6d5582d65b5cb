import shutil
import signal
import subprocess

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
    assert VitalParts().first_ended() is None
