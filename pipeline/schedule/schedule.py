"""When a pipeline runs by itself: a cron expression or an interval, and rules for conflicts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from cronsim import CronSim
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)

from pipeline.schedule.field_checks import (
    check_cron,
    check_interval,
    check_name,
    check_path,
    check_retries,
    check_retry_delay,
    check_text,
    check_timezone,
)

LONGEST_DOUBLED_DELAY_SECONDS = 3600
STAMP = "%Y%m%dT%H%M%SZ"
RESERVED = "lease"

Overlap = Literal["skip", "queue", "replace"]
CatchUp = Literal["none", "last", "all"]
Mode = Literal["run", "refresh"]
Text = Annotated[str, BeforeValidator(check_text)]
AbsolutePath = Annotated[Text, AfterValidator(check_path)]


class Schedule(BaseModel):
    """One schedule of a store, as kept there; it holds no secret.

    Args:
        config: Pipeline file, absolute.
        folder: Where relative paths of the file begin.
        cron: Cron expression, read in ``timezone``; or
        every_seconds: the seconds between ticks, counted from ``created``.
        address: Job server to submit to; none: a process on the machine of the daemon.
        cluster_file: Replaces the section ``cluster`` of the file, at every tick.
        shared_paths: All nodes see the local paths; records of versions that did not ask say so.
        environment, pip, image, runtime_env_file, driver_cpus, driver_memory_bytes: Of the job,
            as ``peg submit`` takes them.
        overlap: What a tick does when the pipeline is still running.
        catch_up: Which of the ticks missed while no daemon was running run later.
        retries: Attempts after the first; the wait doubles each time.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Annotated[Text, AfterValidator(check_name)]
    config: AbsolutePath
    folder: AbsolutePath
    overrides: tuple[Text, ...] = ()
    cron: Annotated[Text, AfterValidator(check_cron)] | None = None
    every_seconds: Annotated[int, AfterValidator(check_interval)] | None = None
    timezone: Annotated[Text, AfterValidator(check_timezone)] = "UTC"
    mode: Mode = "run"
    address: Text | None = None
    working_dir: AbsolutePath | None = None
    with_package: bool = False
    cluster_file: AbsolutePath | None = None
    shared_paths: bool = True
    environment: dict[Text, Text] = {}
    pip: tuple[Text, ...] = ()
    image: Text | None = None
    runtime_env_file: AbsolutePath | None = None
    driver_cpus: Annotated[float, Field(ge=0)] = 0
    driver_memory_bytes: Annotated[int, Field(gt=0)] | None = None
    overlap: Overlap = "skip"
    catch_up: CatchUp = "last"
    retries: Annotated[int, AfterValidator(check_retries)] = 0
    retry_delay_seconds: Annotated[float, AfterValidator(check_retry_delay)] = 60
    created: AwareDatetime

    @model_validator(mode="after")
    def _consistent(self) -> Schedule:
        if (self.cron is None) == (self.every_seconds is None):
            raise ValueError("a schedule needs either a cron expression or an interval")
        if self.name == RESERVED:
            raise ValueError(f"the name {RESERVED!r} is reserved; choose another one")
        if self.next_tick(self.created) is None:
            raise ValueError(
                f"{self.when} never comes after {self.created}; choose other times, and check the "
                "clock of this machine"
            )
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
        """How long to wait after the failure of an attempt: twice as long each time.

        Doubling ends at an hour; a delay that is longer from the beginning stays as it is.
        """
        doublings = min(attempt - 1, LONGEST_DOUBLED_DELAY_SECONDS.bit_length())
        longest = max(self.retry_delay_seconds, LONGEST_DOUBLED_DELAY_SECONDS)
        return timedelta(seconds=min(self.retry_delay_seconds * 2**doublings, longest))

    def _all_after(self, after: datetime) -> Iterator[datetime]:
        try:
            if self.every_seconds is not None:
                yield from self._multiples(self.every_seconds, after)
            elif self.cron is not None:
                for tick in CronSim(self.cron, after.astimezone(ZoneInfo(self.timezone))):
                    yield tick.astimezone(UTC)
        except (OverflowError, ValueError):  # the calendar ends with the year 9999
            return

    def _multiples(self, seconds: int, after: datetime) -> Iterator[datetime]:
        step = timedelta(seconds=seconds)
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
    words += ["--cluster", schedule.cluster_file] if schedule.cluster_file else []
    return [*words, *_job_words(schedule)] if schedule.address else words


def _job_words(schedule: Schedule) -> Iterator[str]:
    """The options of ``peg submit`` that the schedule asks for."""
    for option, value in (
        ("--address", schedule.address),
        ("--working-dir", schedule.working_dir),
        ("--image", schedule.image),
        ("--runtime-env", schedule.runtime_env_file),
        ("--driver-cpus", f"{schedule.driver_cpus:g}" if schedule.driver_cpus else None),
        ("--driver-memory", schedule.driver_memory_bytes and f"{schedule.driver_memory_bytes}B"),
    ):
        if value:
            yield from (option, value)
    yield from ["--with-package"] if schedule.with_package else []
    yield from ["--shared-paths"] if schedule.shared_paths else []
    for name, value in schedule.environment.items():
        yield from ("--env", f"{name}={value}")
    for requirement in schedule.pip:
        yield from ("--pip", requirement)
