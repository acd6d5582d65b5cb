"""Starts what is due in one store: once, in order, never two at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

from peg_core.errors import ConfigError, PegError
from pipeline.config.redaction import redact
from pipeline.schedule.launcher import Outcome, TickLauncher, default_launchers
from pipeline.schedule.schedule import Overlap, Schedule
from pipeline.schedule.schedule_store import ScheduleStore, last_due
from pipeline.schedule.stored_record import UnreadableRecord
from pipeline.schedule.tick import AT_WORK, UNFINISHED, Tick, TickState, text_of, tick_id

# A longer pause between two steps means that the machine slept: ticks in it were missed.
LONGEST_STEP = timedelta(seconds=60)
QUEUE_LIMIT = 1000
NO_RETRY_CODE = ConfigError.exit_code
logger = logging.getLogger(__name__)


class Decision(Enum):
    START = "start"
    SKIP = "skip"
    QUEUE = "queue"
    REPLACE = "replace"


def decide(overlap: Overlap, *, is_busy: bool, queued: int) -> Decision:
    """What a tick that is due does."""
    if not is_busy:
        return Decision.START
    if overlap == "skip" or queued >= QUEUE_LIMIT:
        return Decision.SKIP
    return Decision.REPLACE if overlap == "replace" else Decision.QUEUE


class ScheduleDaemon:
    """The schedules of one store; :meth:`step` is called again and again.

    Its memory is the history in the store: a restarted daemon continues from there.
    Whoever calls :meth:`step` holds the lease of :class:`ScheduleStore`.

    Args:
        notices_due: Start ticks at their regular times, not only requested ones.
        launcher_of: What starts a tick; by default a process, or a job where it has an address.
    """

    def __init__(
        self,
        store: ScheduleStore,
        *,
        notices_due: bool = True,
        launcher_of: Callable[[Tick], TickLauncher] | None = None,
    ) -> None:
        self.store = store
        self._launcher = launcher_of or default_launchers(store.store)
        self._notices_due = notices_due
        self._schedules: dict[str, Schedule] = {}
        self._broken: dict[str, UnreadableRecord] = {}
        self._warned: set[str] = set()
        ticks, self._broken_ticks = store.readable_ticks()
        self._unfinished = [tick for tick in ticks if tick.state in UNFINISHED]
        self._history = {tick.schedule: tick for tick in ticks if tick.kind == "scheduled"}
        self._seen: dict[str, datetime] = {}
        self._last_step: datetime | None = None

    def step(self, now: datetime) -> None:
        """Look at what runs, note what is due, start what can start."""
        found, self._broken = self.store.readable_schedules()
        self._schedules = {schedule.name: schedule for schedule in found}
        self._look()
        broken_requests = self._take_requests()
        self._warn([*self._broken.values(), *self._broken_ticks, *broken_requests])
        for schedule in self._schedules.values() if self._notices_due else ():
            self._note_due(schedule, now)
        self._wake_retries(now)
        self._start_next(now)
        self._last_step = now

    def report(self, now: datetime) -> dict[str, Any]:
        """For the health endpoint."""
        upcoming = {name: s.next_tick(now) for name, s in self._schedules.items()}
        return {
            "store": redact(self.store.store),
            "next": {name: text_of(tick) for name, tick in upcoming.items() if tick is not None},
            "running": [t.submission_id for t in self._unfinished if t.state in AT_WORK],
            "queued": [t.submission_id for t in self._unfinished if t.state not in AT_WORK],
            "unreadable": sorted(redact(message) for message in self._warned),
        }

    def ask(self, tick: Tick) -> Tick:
        """Queue a requested tick; a second later where that second is taken."""
        while not self.store.claim(tick):
            tick = tick.later(self.store.store)
        self._unfinished.append(tick)
        return tick

    def _take_requests(self) -> list[UnreadableRecord]:
        ticks, broken = self.store.take_requests()
        for tick in ticks:
            self.ask(tick)
        return broken

    def _warn(self, broken: list[UnreadableRecord]) -> None:
        """Name what cannot be read: once, not at every step."""
        messages = [str(error) for error in broken]
        for message in messages:
            if message not in self._warned:
                logger.warning("%s", redact(message))
        self._warned = set(messages)

    def _note_due(self, schedule: Schedule, now: datetime) -> None:
        """Claim the ticks since the last look; those that nobody could see were missed."""
        if schedule.name not in self._seen:
            known = self._history.get(schedule.name)
            self._seen[schedule.name] = last_due([known] if known else [], schedule)
        since = self._seen[schedule.name]
        slept = self._last_step is None or now - self._last_step > LONGEST_STEP
        due = list(schedule.ticks(since, now))
        if due and slept:
            self._catch_up(schedule, due, now)
        else:
            for time in due:
                self._admit(schedule, time, now)
        # last: a store that fails on the way is asked again, and claims a tick once
        self._seen[schedule.name] = now

    def _catch_up(self, schedule: Schedule, missed: list[datetime], now: datetime) -> None:
        chosen = {"none": [], "last": missed[-1:], "all": missed}[schedule.catch_up]
        left = len(missed) - len(chosen)
        if left:
            logger.info("%s: %d missed ticks do not run", schedule.name, left)
        if not chosen:
            tick = Tick.of(schedule, missed[-1], self.store.store)
            reason = f"no daemon was running for {left} tick(s); catch-up is none"
            self._claim(tick.end(TickState.SKIPPED, now, reason))
        for time in chosen:
            reason = "caught up" if len(missed) == 1 else f"caught up, {len(missed)} were missed"
            self._claim(Tick.of(schedule, time, self.store.store, reason=reason))

    def _admit(self, schedule: Schedule, time: datetime, now: datetime) -> None:
        tick = Tick.of(schedule, time, self.store.store)
        obstacle = self._obstacle()
        decision = decide(
            schedule.overlap, is_busy=obstacle is not None, queued=len(self._unfinished)
        )
        if decision is Decision.SKIP:
            tick = tick.end(TickState.SKIPPED, now, f"{obstacle} was still running")
        elif decision is Decision.REPLACE:
            self._replace_others(tick, now)
        self._claim(tick)

    def _claim(self, tick: Tick) -> None:
        if self.store.claim(tick) and tick.state in UNFINISHED:
            self._unfinished.append(tick)

    def _obstacle(self) -> str | None:
        """What keeps a new tick from starting at once."""
        if self._unfinished:
            return self._unfinished[0].submission_id
        holder = self.store.pipeline_holder()
        return f"process {holder['pid']} on {holder['host']}" if holder is not None else None

    def _replace_others(self, by: Tick, now: datetime) -> None:
        for tick in list(self._unfinished):
            reason = f"replaced by {by.submission_id}"
            if tick.state not in AT_WORK:
                self._update(tick, tick.end(TickState.REPLACED, now, reason))
            elif not tick.replace:
                self._update(tick, tick.change(replace=True, reason=reason))
                try:
                    self._launcher(tick).stop(tick)
                except (PegError, OSError) as error:  # then the new one waits for its end
                    logger.warning("%s could not be stopped: %s", tick.submission_id, error)

    def _look(self) -> None:
        """Check on the ticks at work."""
        for tick in [tick for tick in self._unfinished if tick.state in AT_WORK]:
            if tick.state is TickState.STARTING:
                # a daemon ended here: it may or may not have come to start it
                self._start(tick, datetime.now(UTC))
                continue
            try:
                outcome = self._launcher(tick).outcome(tick)
            except (PegError, OSError) as error:
                logger.warning("%s: cannot be checked: %s", tick.submission_id, error)
                continue
            if outcome is not None:
                self._finish(tick, outcome, datetime.now(UTC))

    def _finish(self, tick: Tick, outcome: Outcome, now: datetime) -> None:
        reason, code = redact(outcome.reason), outcome.exit_code
        schedule = self._schedules.get(tick.schedule)
        if code == 0:
            ended = tick.end(TickState.SUCCEEDED, now, tick.reason, code)
        elif tick.replace:
            ended = tick.end(TickState.REPLACED, now, tick.reason, code)
        elif schedule is None or tick.attempt > schedule.retries or code == NO_RETRY_CODE:
            ended = tick.end(TickState.FAILED, now, reason, code)
        else:
            at = text_of(now + schedule.retry_delay(tick.attempt))
            ended = tick.end(TickState.WAITING, now, reason, code).change(retry_at=at)
        self._update(tick, ended)

    def _wake_retries(self, now: datetime) -> None:
        for tick in [tick for tick in self._unfinished if tick.state is TickState.WAITING]:
            if tick.retry_at is not None and datetime.fromisoformat(tick.retry_at) <= now:
                attempt = tick.attempt + 1
                # an attempt that was perhaps handed over keeps its id: it can run only once
                name = tick.submission_id
                if tick.begun is not None:
                    name = tick_id(tick.schedule, tick.due, self.store.store, attempt=attempt)
                again = tick.change(
                    state=TickState.QUEUED, attempt=attempt, submission_id=name, pid=None,
                    process_started=None, begun=None, ended=None, exit_code=None, retry_at=None,
                )  # fmt: skip
                self._update(tick, again)

    def _start_next(self, now: datetime) -> None:
        if any(tick.state in AT_WORK for tick in self._unfinished):
            return
        queued = [tick for tick in self._unfinished if tick.state is TickState.QUEUED]
        if queued and self.store.pipeline_holder() is None:
            tick = min(queued, key=lambda tick: tick.due)
            starting = tick.change(state=TickState.STARTING)
            self._update(tick, starting)  # before anything is started: a restart finds it
            self._start(starting, now)

    def _start(self, tick: Tick, now: datetime) -> None:
        schedule = self._schedules.get(tick.schedule)
        if schedule is None:
            reason = str(self._broken.get(tick.schedule, "the schedule was removed"))
            self._update(tick, tick.end(TickState.FAILED, now, redact(reason)))
            return
        try:
            started = self._launcher(tick).start(schedule, tick)
        except (PegError, OSError) as error:
            code = error.exit_code if isinstance(error, PegError) else 1
            self._finish(tick, Outcome(code, f"could not be started: {error}"), now)
            return
        self._update(tick, started.change(state=TickState.RUNNING, begun=text_of(now)))

    def _update(self, old: Tick, new: Tick) -> None:
        """Keep the new state, in the store first."""
        self.store.save(new)
        rest = [tick for tick in self._unfinished if tick is not old]
        self._unfinished = [*rest, new] if new.state in UNFINISHED else rest
        logger.info("%s  %s  %s", new.submission_id, new.state.value, new.reason)
