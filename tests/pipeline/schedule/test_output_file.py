import os
import stat
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from peg_core.errors import PegError
from pipeline.schedule.launcher import ProcessLauncher
from pipeline.schedule.output_file import last_line, open_output, output_path
from pipeline.schedule.schedule import Schedule
from pipeline.schedule.tick import Tick

REMOTE = "s3://bucket/store"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PEG_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_output_of_a_remote_store_is_in_a_folder_of_the_user_alone(cache):
    before = os.umask(0)
    try:
        open_output(REMOTE, "a-1").close()
    finally:
        os.umask(before)
    path = output_path(REMOTE, "a-1")
    assert cache in path.parents
    assert (mode_of(path.parent), mode_of(path)) == (0o700, 0o600)


def test_a_process_of_a_remote_store_leaves_nothing_in_the_shared_folder(
    cache, tmp_path, monkeypatch
):
    shared = tmp_path / "shared"
    shared.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    monkeypatch.setattr("pipeline.schedule.launcher.read_run_log", lambda *_: [])
    now = datetime.now(UTC)
    schedule = Schedule(
        name="a", config="/no-such-file.yaml", folder=str(tmp_path), every_seconds=5, created=now
    )
    launcher = ProcessLauncher(REMOTE)
    tick = launcher.start(schedule, Tick.of(schedule, now, REMOTE))
    launcher._children[tick.submission_id].wait()
    assert "/no-such-file.yaml" in launcher.outcome(tick).reason
    assert list(shared.iterdir()) == []
    assert [path.name for path in cache.rglob("*.out")] == [f"{tick.submission_id}.out"]


def test_a_folder_that_others_could_enter_is_closed(cache):
    (cache / "output").mkdir(parents=True, mode=0o755)
    open_output(REMOTE, "a-1").close()
    assert mode_of(cache / "output") == 0o700


def test_a_link_in_place_of_the_folder_or_the_file_is_refused(cache, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    cache.mkdir()
    (cache / "output").symlink_to(elsewhere)
    with pytest.raises(PegError, match="set PEG_CACHE_DIR"):
        open_output(REMOTE, "a-1")
    (cache / "output").unlink()
    target = tmp_path / "target"
    target.write_text("mine")
    (cache / "output").mkdir()
    (cache / "output" / "a-1.out").symlink_to(target)
    with pytest.raises(OSError, match="symbolic links"):
        open_output(REMOTE, "a-1")
    assert target.read_text() == "mine"
    assert list(elsewhere.iterdir()) == []


def test_output_of_a_local_store_is_in_its_logs(tmp_path):
    with open_output(str(tmp_path), "a-1") as file:
        file.write(b"x" * 10**6 + b"\nfirst\nlast \xff\n\n")
    assert last_line(tmp_path / "logs" / "a-1.out") == "last \ufffd"
    assert last_line(Path("/no/such/file")) == ""
