"""What is started when; the launcher only notes what it is told, clocks are numbers."""

from datetime import UTC, datetime, timedelta

import pytest

from peg_core.errors import ConfigError, PegError
from pipeline.schedule.daemon import ScheduleDaemon
from pipeline.schedule.launcher import Outcome
from pipeline.schedule.schedule import Schedule
from pipeline.schedule.schedule_store import ScheduleStore
from pipeline.schedule.tick import Tick, TickState
from pipeline.store.lease import Lease, StoreBusy

START = datetime(2026, 1, 1, tzinfo=UTC)


class Launcher:
    """Runs go on until the test ends them."""

    def __init__(self):
        self.started, self.stopped, self.outcomes = [], [], {}
        self.error = None

    def start(self, _schedule, tick):
        if self.error:
            raise self.error
        if tick.submission_id not in self.started:
            self.started.append(tick.submission_id)
        return tick

    def outcome(self, tick):
        return self.outcomes.get(tick.submission_id)

    def stop(self, tick):
        self.stopped.append(tick.submission_id)
        self.outcomes[tick.submission_id] = Outcome(130, "interrupted")

    def end_last(self, code=0, reason=""):
        self.outcomes[self.started[-1]] = Outcome(code, reason)


class World:
    """A store with one schedule, and a daemon that can be lost."""

    def __init__(self, folder, **changes):
        facts = {"name": "a", "config": "/c.yaml", "folder": "/", "created": START}
        self.store = ScheduleStore(str(folder))
        self.store.add(Schedule(**{**facts, "every_seconds": 10, **changes}))
        self.launcher = Launcher()
        self.restart()

    def restart(self):
        self.daemon = ScheduleDaemon(self.store, launcher_of=lambda _: self.launcher)

    def go(self, *seconds):
        for second in seconds:
            self.daemon.step(START + timedelta(seconds=second))

    def states(self):
        return [(tick.due[-3:-1], tick.state.value) for tick in self.store.ticks("a")]


def test_each_tick_runs_once_when_there_is_time(tmp_path):
    world = World(tmp_path)
    for second in (0, 9, 10, 11, 19, 20, 21):
        world.go(second)
        if world.launcher.started:
            world.launcher.end_last()
    assert world.states() == [("10", "succeeded"), ("20", "succeeded")]
    assert len(world.launcher.started) == 2
    assert world.launcher.started[0].startswith("a-20260101T000010Z-")


def test_skip_leaves_ticks_out_while_a_run_goes_on(tmp_path):
    world = World(tmp_path, overlap="skip")
    world.go(0, 10, 20, 30)
    world.launcher.end_last()
    world.go(31, 40)
    assert world.states() == [
        ("10", "succeeded"), ("20", "skipped"), ("30", "skipped"), ("40", "running"),
    ]  # fmt: skip
    assert world.launcher.started[0] in world.store.ticks("a")[1].reason


def test_queue_runs_all_in_order_one_at_a_time(tmp_path):
    world = World(tmp_path, overlap="queue")
    world.go(0, 10, 20, 30)
    assert len(world.launcher.started) == 1
    for second in (31, 32, 33):
        world.launcher.end_last()
        world.go(second)
    assert [name.split("-")[1][-3:-1] for name in world.launcher.started] == ["10", "20", "30"]
    assert {state for _, state in world.states()} == {"succeeded"}


def test_replace_stops_the_run_and_starts_after_its_end(tmp_path):
    world = World(tmp_path, overlap="replace")
    world.go(0, 10, 20)
    assert world.launcher.stopped == world.launcher.started[:1]
    world.go(21)
    assert world.states() == [("10", "replaced"), ("20", "running")]


@pytest.mark.parametrize(
    ("catch_up", "expected"),
    [("none", [("40", "skipped")]), ("last", [("40", "running")]),
     ("all", [("10", "running"), ("20", "queued"), ("30", "queued"), ("40", "queued")])],
)  # fmt: skip
def test_missed_ticks_are_caught_up_as_asked(tmp_path, catch_up, expected):
    world = World(tmp_path, catch_up=catch_up)
    world.go(45)
    assert world.states() == expected
    world.restart()
    world.go(46)
    assert world.states() == expected


def test_a_machine_that_slept_missed_its_ticks(tmp_path):
    world = World(tmp_path, catch_up="last")
    world.go(0, 3605)
    assert [state for _, state in world.states()] == ["running"]


def test_a_restart_starts_nothing_twice(tmp_path):
    world = World(tmp_path, overlap="queue")
    world.go(0, 10, 20)
    world.restart()
    world.go(21)
    assert len(world.launcher.started) == 1
    world.launcher.end_last()
    world.go(22)
    world.restart()
    world.launcher.end_last()
    world.go(23)
    assert world.states() == [("10", "succeeded"), ("20", "succeeded")]
    assert len(world.launcher.started) == 2


def test_a_daemon_lost_while_starting_finds_what_it_started(tmp_path):
    world = World(tmp_path)
    tick = Tick.of(world.store.get("a"), START + timedelta(seconds=10), world.store.store)
    world.store.claim(tick.change(state=TickState.STARTING))
    world.launcher.started.append(tick.submission_id)  # handed over, not noted
    world.restart()
    world.go(11)
    assert world.launcher.started == [tick.submission_id]
    assert world.states() == [("10", "running")]


def test_a_failure_is_tried_again_under_another_id_and_then_given_up(tmp_path):
    world = World(tmp_path, retries=2, retry_delay_seconds=3, every_seconds=3600, catch_up="none")
    world.daemon.ask(Tick.of(world.store.get("a"), START, world.store.store, kind="manual"))
    world.go(1)
    for _ in range(3):
        world.launcher.end_last(1, "no space")
        world.daemon.step(datetime.now(UTC))
        world.daemon.step(datetime.now(UTC) + timedelta(seconds=30))
    names = [name.rpartition("-")[2] for name in world.launcher.started[1:]]
    assert names == ["try2", "try3"]
    [tick] = [tick for tick in world.store.ticks("a") if tick.kind == "manual"]
    assert (tick.state, tick.attempt, tick.exit_code) == (TickState.FAILED, 3, 1)
    assert tick.reason == "no space"


def test_an_attempt_that_could_not_be_handed_over_keeps_its_id(tmp_path):
    """It may have arrived all the same; under the same id the cluster takes it once."""
    world = World(tmp_path, retries=1, retry_delay_seconds=1)
    world.launcher.error = PegError("no answer")
    world.go(0, 10)
    assert world.states() == [("10", "waiting")]
    world.launcher.error = None
    world.daemon.step(START + timedelta(seconds=12))
    [tick] = world.store.ticks("a")
    assert (tick.attempt, tick.state.value) == (2, "running")
    assert not tick.submission_id.endswith("try2")


def test_a_wrong_configuration_is_not_tried_again(tmp_path):
    world = World(tmp_path, retries=5)
    world.launcher.error = ConfigError("unknown key")
    world.go(0, 10)
    assert world.states() == [("10", "failed")]


def test_a_run_of_somebody_else_is_waited_for(tmp_path):
    world = World(tmp_path, overlap="queue")
    with Lease(tmp_path):
        world.go(0, 10)
        assert world.states() == [("10", "queued")]
    world.go(11)
    assert world.states() == [("10", "running")]


def test_what_is_asked_for_runs_beside_the_regular_times(tmp_path):
    world = World(tmp_path)
    asked = Tick.of(world.store.get("a"), START + timedelta(seconds=3), world.store.store)
    world.store.request(asked.change(kind="manual"))
    world.go(4)
    assert world.states() == [("03", "running")]
    world.launcher.end_last()
    world.go(10)
    assert world.states() == [("03", "succeeded"), ("10", "running")]


def test_a_tick_is_claimed_once(tmp_path):
    store = World(tmp_path).store
    tick = Tick.of(store.get("a"), START, store.store)
    assert store.claim(tick)
    assert not store.claim(tick)


def test_one_daemon_a_store(tmp_path):
    store = World(tmp_path).store
    with store.lease(), pytest.raises(StoreBusy), store.lease():
        pass
    assert store.daemon() is None


def test_schedules_are_kept_shown_and_removed(tmp_path):
    store = World(tmp_path).store
    with pytest.raises(ConfigError, match="--replace"):
        store.add(store.get("a"))
    assert store.names() == ["a"]
    with pytest.raises(ConfigError, match="no schedule 'b'; it has a"):
        store.get("b")
    store.remove("a")
    assert store.names() == []


def test_a_secret_is_not_stored(tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-long-secret")
    store = World(tmp_path).store
    schedule = store.get("a").model_copy(update={"name": "b", "overrides": ("x=a-long-secret",)})
    with pytest.raises(ConfigError, match="would hold a secret"):
        store.add(schedule)
    assert store.names() == ["a"]


def test_schedules_and_history_live_in_an_object_store_too(object_store):
    store = ScheduleStore(f"s3://{object_store.new_bucket()}/p{object_store.options()}")
    facts = {"name": "a", "config": "/c.yaml", "folder": "/", "created": START}
    store.add(Schedule(**facts, every_seconds=10))
    launcher = Launcher()
    daemon = ScheduleDaemon(store, launcher_of=lambda _: launcher)
    daemon.step(START)
    daemon.step(START + timedelta(seconds=10))
    launcher.end_last()
    daemon.step(START + timedelta(seconds=11))
    assert [tick.state.value for tick in store.ticks()] == ["succeeded"]
