import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from workers.local_ray.private_session import (
    LONGEST_BASE,
    PREFIX,
    PrivateSession,
    mend_token_file,
    remove_dead_sessions,
    temporary_base,
)

HOLD = """
from workers.local_ray.private_session import PrivateSession
print(PrivateSession().folder, flush=True)
input()
"""


@pytest.fixture
def base(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    with tempfile.TemporaryDirectory(prefix="t-", dir="/tmp") as folder:
        monkeypatch.setenv("RAY_TMPDIR", folder)
        yield Path(folder)


@pytest.fixture
def other(base):
    """Another process with a session."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )  # fmt: skip
    process.folder = Path(process.stdout.readline().strip())
    yield process
    process.kill()
    process.wait()


def test_a_live_session_stays_and_a_killed_one_goes(base, other):
    (other.folder / "session").mkdir()
    remove_dead_sessions(base)
    assert (other.folder / "session").exists()
    other.kill()
    other.wait()
    remove_dead_sessions(base)
    assert list(base.iterdir()) == []


def test_what_is_not_a_session_stays(base):
    (base / "peg-ray-x").mkdir()
    (base / f"{PREFIX}file").touch()
    (base / f"{PREFIX}link").symlink_to(base / "peg-ray-x")
    remove_dead_sessions(base)
    assert len(list(base.iterdir())) == 3


def test_a_token_that_the_user_chose_is_kept(base, monkeypatch):
    monkeypatch.setenv("RAY_AUTH_TOKEN", "of-the-user")
    session = PrivateSession()
    assert os.environ["RAY_AUTH_TOKEN"] == "of-the-user"
    session.close()
    assert os.environ["RAY_AUTH_TOKEN"] == "of-the-user"


def test_a_long_temporary_folder_is_left_for_a_short_one(monkeypatch):
    monkeypatch.setenv("RAY_TMPDIR", "/" + "a" * LONGEST_BASE)
    assert temporary_base() == Path("/tmp")
    monkeypatch.setenv("RAY_TMPDIR", "/" + "a" * (LONGEST_BASE - 1))
    assert temporary_base() != Path("/tmp")


def test_links_are_not_followed_when_modes_are_mended(tmp_path):
    target = tmp_path / "target"
    target.touch()
    target.chmod(0o644)
    (tmp_path / ".ray").mkdir()
    (tmp_path / ".ray" / "auth_token").symlink_to(target)
    mend_token_file(tmp_path / ".ray" / "auth_token")
    assert target.stat().st_mode & 0o077
