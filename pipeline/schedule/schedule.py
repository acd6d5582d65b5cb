"""When a pipeline runs by itself: a cron expression or an interval, and rules for conflicts."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

LONGEST_RETRY_DELAY = timedelta(hours=1)
SECONDS_PER_UNIT = {"s": 1, "m": 60, "h": 3600, "d": 86400}
STAMP = "%Y%m%dT%H%M%SZ"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
RESERVED = "lease"

Overlap = Literal["skip", "queue", "replace"]
CatchUp = Literal["none", "last", "all"]
Mode = Literal["run", "refresh"]


def parse_interval(text: str) -> int:
    """``"90s"``, ``"15m"``, ``"6h"`` or ``"1d"`` in seconds."""
    match = re.fullmatch(r"(\d+)([smhd])", text.strip())
    if match is None or int(match[1]) == 0:
        raise ValueError(f"{text!r} is not an interval; write for example 90s, 15m, 6h or 1d")
    return int(match[1]) * SECONDS_PER_UNIT[match[2]]


def _check_cron(text: str) -> str:
    try:
        next(CronSim(text, EPOCH))
    except (CronSimError, StopIteration) as error:
        raise ValueError(
            f"{text!r} is not a cron expression ({error or 'it never fires'}); write five fields, "
            "minute hour day month weekday, such as '30 2 * * *', or six with seconds first"
        ) from None
    return text


def _check_timezone(text: str) -> str:
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError):
        raise ValueError(f"no time zone {text!r}; write for example Europe/Berlin") from None
    return text


class Schedule(BaseModel):
    """One schedule of a store, as kept there; it holds no secret.

    Args:
        config: Pipeline file, absolute.
        folder: Where relative paths of the file begin.
        cron: Cron expression, read in ``timezone``; or
        every_seconds: the seconds between ticks, counted from ``created``.
        address: Job server to submit to; none: a process on the machine of the daemon.
        overlap: What a tick does when the pipeline is still running.
        catch_up: Which of the ticks missed while no daemon was running run later.
        retries: Attempts after the first; the wait doubles each time.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    config: str
    folder: str
    overrides: tuple[str, ...] = ()
    cron: Annotated[str, AfterValidator(_check_cron)] | None = None
    every_seconds: int | None = Field(None, ge=1)
    timezone: Annotated[str, AfterValidator(_check_timezone)] = "UTC"
    mode: Mode = "run"
    address: str | None = None
    working_dir: str | None = None
    with_package: bool = False
    overlap: Overlap = "skip"
    catch_up: CatchUp = "last"
    retries: int = Field(0, ge=0)
    retry_delay_seconds: float = Field(60, gt=0)
    created: datetime

    @model_validator(mode="after")
    def _consistent(self) -> Schedule:
        if (self.cron is None) == (self.every_seconds is None):
            raise ValueError("a schedule needs either a cron expression or an interval")
        if self.name == RESERVED:
            raise ValueError(f"the name {RESERVED!r} is reserved; choose another one")
        return self

    @property
    def when(self) -> str:
        """As the user wrote it."""
        return f"{self.cron} ({self.timezone})" if self.cron else f"every {self.every_seconds} s"

    def ticks(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """The times in ``(after, until]``, in UTC and in order."""
        for tick in self._all_after(after):
            if tick > until:
                return
            yield tick

    def next_tick(self, after: datetime) -> datetime | None:
        """The first time after ``after``, in UTC; None when there is none."""
        return next(self._all_after(after), None)

    def retry_delay(self, attempt: int) -> timedelta:
        """How long to wait after the failure of an attempt: twice as long each time."""
        delay = timedelta(seconds=self.retry_delay_seconds * 2 ** (attempt - 1))
        return min(delay, LONGEST_RETRY_DELAY)

    def _all_after(self, after: datetime) -> Iterator[datetime]:
        if self.cron is not None:
            for tick in CronSim(self.cron, after.astimezone(ZoneInfo(self.timezone))):
                yield tick.astimezone(UTC)
            return
        assert self.every_seconds is not None
        step = timedelta(seconds=self.every_seconds)
        tick = self.created.astimezone(UTC).replace(microsecond=0)
        tick += max(0, (after - tick) // step) * step
        while True:
            if tick > after:
                yield tick
            tick += step


def command_words(schedule: Schedule) -> list[str]:
    """The command of a tick, for other schedulers: a run here, or the submission of a job."""
    words = [sys.executable, "-m", "pipeline", "submit" if schedule.address else "run"]
    words += [schedule.config]
    words += ["--refresh"] if schedule.mode == "refresh" else []
    words += [part for item in schedule.overrides for part in ("--set", item)]
    if schedule.address:
        words += ["--address", schedule.address]
        words += ["--working-dir", schedule.working_dir] if schedule.working_dir else []
        words += ["--with-package"] if schedule.with_package else []
    return words
