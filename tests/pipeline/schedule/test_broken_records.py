"""One record that cannot be read is named, and everything else goes on."""

import json
import logging
import os
import threading
from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner

from peg_core.errors import ConfigError
from peg_core.object_url import StorageError
from peg_core.storage.object_storage import Storage
from pipeline.cli.app import cli
from pipeline.schedule.daemon import ScheduleDaemon
from pipeline.schedule.launcher import Outcome
from pipeline.schedule.schedule import Schedule
from pipeline.schedule.schedule_store import ScheduleStore
from pipeline.schedule.service import ScheduleService
from pipeline.schedule.stored_record import UnreadableRecord
from pipeline.schedule.tick import Tick, TickState

START = datetime(2026, 1, 1, tzinfo=UTC)
GOOD = {
    "name": "broken", "config": "/c.yaml", "folder": "/", "every_seconds": 10,
    "created": "2026-01-01T00:00:00Z",
}  # fmt: skip
BROKEN_SCHEDULES = {
    "cut off": json.dumps(GOOD)[:40].encode(),
    "empty": b"",
    "nothing": b"null",
    "no UTF-8": b'{"name": "\xff"}',
    "a list": b"[1, 2]",
    "nested": b"[" * 100_000,
    "a number too long": b"9" * 5000,
    "newer": json.dumps({**GOOD, "priority": 3}).encode(),
    "enormous": json.dumps({**GOOD, "every_seconds": 99999999999999999999 * 86400}).encode(),
    "no time zone": json.dumps({**GOOD, "created": "2026-01-01T00:00:00"}).encode(),
    "unknown zone": json.dumps({**GOOD, "timezone": "Mars/Base"}).encode(),
    "another name": json.dumps({**GOOD, "name": "well"}).encode(),
    "wrong type": json.dumps({**GOOD, "overrides": 7}).encode(),
}
GOOD_TICK = Tick("well", "20260101T000500Z", "well-20260101T000500Z-0").as_dict()
BROKEN_TICKS = {
    "cut off": json.dumps(GOOD_TICK)[:30].encode(),
    "empty": b"",
    "unknown state": json.dumps({**GOOD_TICK, "state": "paused"}).encode(),
    "no state of time": json.dumps({**GOOD_TICK, "due": "yesterday"}).encode(),
    "another place": json.dumps({**GOOD_TICK, "schedule": "../../well"}).encode(),
    "retry without zone": json.dumps({**GOOD_TICK, "retry_at": "2026-01-01T00:00:00"}).encode(),
    "every process": json.dumps({**GOOD_TICK, "state": "running", "pid": -1}).encode(),
    "a list": b"[]",
}


class Launcher:
    """Runs end at once and well."""

    def __init__(self):
        self.started = []

    def start(self, _schedule, tick):
        self.started.append(tick.schedule)
        return tick

    def outcome(self, _tick):
        return Outcome(0)

    def stop(self, _tick):
        raise AssertionError("nothing is to be stopped")


@pytest.fixture
def store(tmp_path):
    """A store with the schedule ``well``."""
    store = ScheduleStore(str(tmp_path / "store"))
    store.add(Schedule.model_validate({**GOOD, "name": "well"}))
    return store


@pytest.fixture(params=BROKEN_SCHEDULES.values(), ids=BROKEN_SCHEDULES.keys())
def broken(request, store, tmp_path):
    """The file of a broken schedule beside it."""
    file = tmp_path / "store" / "schedules" / "broken.json"
    file.write_bytes(request.param)
    return file


@pytest.fixture(params=BROKEN_TICKS.values(), ids=BROKEN_TICKS.keys())
def broken_tick(request):
    return request.param


def peg(*arguments):
    return CliRunner().invoke(cli, ["schedule", *map(str, arguments)], catch_exceptions=False)


def serve(store, *seconds):
    launcher = Launcher()
    daemon = ScheduleDaemon(store, launcher_of=lambda _: launcher)
    for second in seconds:
        daemon.step(START + timedelta(seconds=second))
    return launcher, daemon


def test_list_shows_the_others_and_names_the_broken_one(store, broken):
    shown = peg("list", store.store)
    assert shown.exit_code == 0
    assert "every 10 s" in shown.stdout
    assert str(broken) in shown.stderr
    assert f"peg schedule remove {store.store} broken" in shown.stderr
    shown = peg("list", store.store, "--json")
    assert [item["name"] for item in json.loads(shown.stdout)] == ["well"]
    assert str(broken) in shown.stderr


def test_the_daemon_starts_the_others_and_names_the_broken_one_once(store, broken, caplog):
    launcher, daemon = serve(store, 0, 10, 11, 12)
    assert launcher.started == ["well"]
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert str(broken) in warnings[0]
    report = daemon.report(START)
    assert list(report["next"]) == ["well"]
    assert report["unreadable"] == warnings


def test_the_broken_one_says_why_when_it_is_asked_for_and_can_be_removed(store, broken):
    with pytest.raises(UnreadableRecord, match=r"peg schedule remove .* broken"):
        store.get("broken")
    assert peg("remove", store.store, "broken").exit_code == 0
    assert not broken.exists()
    assert [schedule.name for schedule in store.schedules()] == ["well"]


def test_whoever_needs_all_schedules_is_told(store, broken):
    """Garbage collection must not take what the broken one uses."""
    with pytest.raises(UnreadableRecord, match=str(broken)):
        store.schedules()


def test_the_broken_one_can_be_replaced(store, broken):
    del broken
    store.add(Schedule.model_validate(GOOD), replace=True)
    assert store.get("broken").every_seconds == 10


def test_another_one_runs_now(store, broken, monkeypatch):
    launcher = Launcher()
    monkeypatch.setattr("pipeline.schedule.daemon.default_launchers", lambda _: lambda _: launcher)
    done = peg("run-now", store.store, "well")
    assert done.exit_code == 0, done.output
    assert launcher.started == ["well"]


def test_an_unknown_key_is_refused_by_name(store, tmp_path):
    file = tmp_path / "store" / "schedules" / "broken.json"
    file.write_text(json.dumps({**GOOD, "priority": 3}))
    with pytest.raises(UnreadableRecord, match="the key 'priority' is unknown"):
        store.get("broken")


def test_what_waits_for_a_broken_schedule_fails_and_holds_nobody_up(store, tmp_path):
    file = tmp_path / "store" / "schedules" / "broken.json"
    store.add(Schedule.model_validate(GOOD))
    store.claim(Tick.of(store.get("broken"), START + timedelta(seconds=5), store.store))
    file.write_text("")
    launcher, _ = serve(store, 0, 10, 11)
    [failed] = store.ticks("broken")
    assert failed.state is TickState.FAILED
    assert str(file) in failed.reason
    assert launcher.started == ["well"]


def test_history_shows_the_other_ticks_and_names_the_broken_one(store, tmp_path, broken_tick):
    store.claim(Tick.of(store.get("well"), START, store.store))
    file = tmp_path / "store/schedules/well/history/20260101T000500Z.json"
    file.write_bytes(broken_tick)
    shown = peg("history", store.store, "--json")
    assert shown.exit_code == 0
    assert [tick["due"] for tick in json.loads(shown.stdout)] == ["20260101T000000Z"]
    assert str(file) in shown.stderr
    assert "delete this file" in shown.stderr


def test_the_daemon_goes_on_after_a_broken_tick(store, tmp_path, broken_tick, caplog):
    file = tmp_path / "store/schedules/well/history/20260101T000500Z.json"
    file.parent.mkdir(parents=True)
    file.write_bytes(broken_tick)
    launcher, _ = serve(store, 0, 10, 11, 300, 301)
    assert launcher.started == ["well"], "a tick whose record is broken does not run again"
    assert [r.getMessage() for r in caplog.records if str(file) in r.getMessage()]
    assert file.read_bytes() == broken_tick


def test_the_daemon_goes_on_after_a_broken_request(store, tmp_path, broken_tick, caplog):
    file = tmp_path / "store/schedules/well/requests/20260101T000500Z.json"
    file.parent.mkdir(parents=True)
    file.write_bytes(broken_tick)
    asked = Tick.of(store.get("well"), START + timedelta(seconds=3), store.store, kind="manual")
    store.request(asked)
    launcher, _ = serve(store, 4, 5)
    assert launcher.started == ["well"]
    messages = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert [str(file) in message for message in messages] == [True]


def test_keys_that_a_newer_version_added_to_a_tick_are_left_out(store, tmp_path):
    file = tmp_path / "store/schedules/well/history/20260101T000500Z.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({**GOOD_TICK, "node": "b7"}))
    assert store.ticks() == [Tick.read(GOOD_TICK)]


def test_a_file_without_permission_is_named(store, tmp_path, monkeypatch):
    """The files of root are readable whatever their mode says, so the answer is made up."""
    file = tmp_path / "store" / "schedules" / "broken.json"
    file.write_text(json.dumps(GOOD))
    read = Storage.read_json

    def refuse(self, name):
        if name.endswith("broken.json"):
            raise StorageError("cannot read") from PermissionError("denied")
        return read(self, name)

    monkeypatch.setattr(Storage, "read_json", refuse)
    found, broken = store.readable_schedules()
    assert [schedule.name for schedule in found] == ["well"]
    assert "permission denied" in str(broken["broken"])


def test_a_store_that_does_not_answer_is_not_a_broken_record(store, monkeypatch):
    def away(_self, _name):
        raise StorageError("cannot read") from OSError("no network")

    monkeypatch.setattr(Storage, "read_json", away)
    with pytest.raises(StorageError):
        store.readable_schedules()


def test_a_text_that_arrived_torn_is_read_again(store, monkeypatch):
    read, calls = Storage.read_json, []

    def torn_once(self, name):
        calls.append(name)
        if len(calls) == 1:
            raise StorageError("cannot read") from json.JSONDecodeError("cut off", "{", 1)
        return read(self, name)

    monkeypatch.setattr(Storage, "read_json", torn_once)
    assert store.get("well").name == "well"


@pytest.mark.parametrize("name", ["lease", "../lease", "well/history/x"])
def test_only_schedules_can_be_read_and_removed_by_name(store, tmp_path, name):
    (tmp_path / "store" / "schedules" / "lease.json").write_text("{}")
    (tmp_path / "store" / "lease.json").write_text("{}")
    for act in (store.get, store.remove):
        with pytest.raises(ConfigError, match="has no schedule"):
            act(name)
    assert (tmp_path / "store" / "schedules" / "lease.json").exists()
    assert (tmp_path / "store" / "lease.json").exists()


def test_marks_of_the_console_in_a_reason_are_only_text(store):
    tick = Tick.of(store.get("well"), START, store.store)
    store.claim(tick.end(TickState.FAILED, START, "[/bold] no [red]"))
    shown = peg("history", store.store)
    assert shown.exit_code == 0
    assert "[/bold]" in shown.output


def test_a_full_disk_does_not_end_the_service(store, monkeypatch):
    """Its next step may find room again."""
    stepped = threading.Event()

    def full(_self, _now):
        stepped.set()
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(ScheduleDaemon, "step", full)
    service = ScheduleService([store.store])
    service._step([ScheduleDaemon(store)])
    assert stepped.is_set()
    assert "No space left" in service.health()[1]["last_error"]
