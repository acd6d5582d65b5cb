"""One time at which a schedule runs, and how it turned out."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache
from typing import Annotated, Any

from pydantic import AfterValidator, Field, TypeAdapter

from pipeline.schedule.schedule import STAMP, Schedule


class TickState(StrEnum):
    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    WAITING = "waiting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"
    REPLACED = "replaced"


AT_WORK = frozenset({TickState.STARTING, TickState.RUNNING})
UNFINISHED = AT_WORK | {TickState.QUEUED, TickState.WAITING}


def _check_stamp(text: str) -> str:
    if datetime.strptime(text, STAMP).strftime(STAMP) != text:
        raise ValueError(f"due is {text!r}, not a time such as 20260131T023000Z")
    return text


def _check_time(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError(f"the time {text!r} has no time zone")
    return text


Time = Annotated[str, AfterValidator(_check_time)]


@dataclass(frozen=True)
class Tick:
    """The record of a tick; written before anything is started, so that it starts once.

    Args:
        due: When it was to run, ``%Y%m%dT%H%M%SZ`` in UTC; its name in the history.
        kind: ``scheduled``, or ``manual`` for one that was asked for.
        address: Job server it goes to; none: a process.
        submission_id: Name of the job or run of this attempt.
        begun: When this attempt was known to run.
        replace: Whether it must end so that a later tick can run.
    """

    schedule: str
    due: Annotated[str, AfterValidator(_check_stamp)]
    submission_id: str
    kind: str = "scheduled"
    state: TickState = TickState.QUEUED
    address: str | None = None
    attempt: Annotated[int, Field(ge=1)] = 1
    pid: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    process_started: float | None = None
    begun: Time | None = None
    ended: Time | None = None
    exit_code: int | None = None
    retry_at: Time | None = None
    replace: bool = False
    reason: str = ""

    @classmethod
    def of(cls, schedule: Schedule, due: datetime, store: str, **facts: Any) -> Tick:
        stamp = due.astimezone(UTC).strftime(STAMP)
        return cls(
            schedule=schedule.name,
            due=stamp,
            submission_id=tick_id(schedule.name, stamp, store, attempt=1),
            address=schedule.address,
            **facts,
        )

    @classmethod
    def read(cls, values: object) -> Tick:
        """The tick of a record; keys that a newer version added are left out.

        Raises:
            ValidationError: A key is missing, or its value is none that a tick can have.
        """
        return _reader().validate_python(values)

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def change(self, **facts: Any) -> Tick:
        return dataclasses.replace(self, **facts)

    def end(self, state: TickState, now: datetime, reason: str = "", exit_code: int | None = None
    ) -> Tick:  # fmt: skip
        return self.change(state=state, ended=text_of(now), reason=reason, exit_code=exit_code)

    def later(self, store: str) -> Tick:
        """The same a second later."""
        due = (self.due_time + timedelta(seconds=1)).strftime(STAMP)
        return self.change(due=due, submission_id=tick_id(self.schedule, due, store, attempt=1))

    @property
    def due_time(self) -> datetime:
        return datetime.strptime(self.due, STAMP).replace(tzinfo=UTC)


@cache
def _reader() -> TypeAdapter[Tick]:
    return TypeAdapter(Tick)


def tick_id(schedule: str, due: str, store: str, *, attempt: int) -> str:
    """The same tick of the same store always has the same name: a cluster takes it once."""
    digest = hashlib.sha256(store.encode()).hexdigest()[:8]
    again = f"-try{attempt}" if attempt > 1 else ""
    return f"{schedule}-{due}-{digest}{again}"


def text_of(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="seconds")
