"""Cron expressions as calendar events of systemd."""

from __future__ import annotations

from collections.abc import Collection

from cronsim import CronSim

from peg_core.errors import ConfigError
from pipeline.schedule.field_checks import EPOCH

WEEKDAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def calendar_events(cron: str, timezone: str) -> list[str]:
    """Values of ``OnCalendar=`` that together mean the expression.

    Cron runs when the day of the month *or* the weekday matches where both are given; systemd
    wants both to match, so such an expression becomes two events.
    """
    parsed = CronSim(cron, EPOCH)
    weekdays = sorted({WEEKDAYS.index(WEEKDAYS[day % 7]) for day in _plain(parsed.weekdays, cron)})
    days = _numbers(_plain(parsed.days, cron), range(1, 32))
    months = _numbers(parsed.months, range(1, 13))
    clock = ":".join(
        _numbers(values, range(count))
        for values, count in ((parsed.hours, 24), (parsed.minutes, 60), (parsed.seconds, 60))
    )
    names = "" if len(weekdays) == 7 else ",".join(WEEKDAYS[day] for day in weekdays) + " "
    if parsed.day_and or not names or days == "*":
        return [f"{names}*-{months}-{days} {clock} {timezone}"]
    return [f"*-{months}-{days} {clock} {timezone}", f"{names}*-{months}-* {clock} {timezone}"]


def _plain(values: Collection[object], cron: str) -> list[int]:
    plain = [value for value in values if isinstance(value, int) and value >= 0]
    if len(plain) != len(values):
        raise ConfigError(
            f"systemd has no equivalent of 'L', 'W' or '#' in {cron!r}; write the days as numbers"
        )
    return plain


def _numbers(values: Collection[int], everything: range) -> str:
    if set(values) == set(everything):
        return "*"
    return ",".join(f"{value:02}" for value in sorted(values))
