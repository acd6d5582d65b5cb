from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.schedule.schedule import Schedule, parse_interval

START = datetime(2026, 1, 1, tzinfo=UTC)


def schedule(**changes):
    facts = {"name": "a", "config": "/c.yaml", "folder": "/", "created": START}
    return Schedule(**{**facts, **changes})


def test_a_time_zone_moves_the_clock_with_daylight_saving():
    """Half past six in Berlin is 5:30 in UTC in winter and 4:30 in summer."""
    nightly = schedule(cron="30 6 * * *", timezone="Europe/Berlin")
    winter = next(nightly.ticks(datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 2, 3, tzinfo=UTC)))
    summer = next(nightly.ticks(datetime(2026, 7, 1, tzinfo=UTC), datetime(2026, 7, 3, tzinfo=UTC)))
    assert (winter.hour, summer.hour) == (5, 4)


@pytest.mark.parametrize("day", [datetime(2026, 3, 29), datetime(2026, 10, 25)])
def test_the_day_the_clocks_change_has_one_night_run(day):
    """02:30 does not exist in spring and comes twice in autumn."""
    nightly = schedule(cron="30 2 * * *", timezone="Europe/Berlin")
    noon = day.replace(hour=12, tzinfo=UTC)
    assert len(list(nightly.ticks(noon - timedelta(days=1), noon))) == 1


@given(st.integers(1, 10**6), st.integers(0, 10**7))
def test_intervals_are_counted_from_the_beginning(seconds, later):
    every = schedule(every_seconds=seconds)
    after = START + timedelta(seconds=later)
    first, second = islice(every.ticks(after, after + timedelta(days=100)), 2)
    assert first > after
    assert (first - START).total_seconds() % seconds == 0
    assert (second - first).total_seconds() == seconds


def test_ticks_of_two_looks_are_those_of_one():
    every = schedule(cron="*/7 * * * * *")
    middle, end = START + timedelta(seconds=28), START + timedelta(seconds=90)
    assert [*every.ticks(START, middle), *every.ticks(middle, end)] == [*every.ticks(START, end)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cron": "99 * * * *"}, "not a cron expression"),
        ({"cron": "* * *"}, "not a cron expression"),
        ({"cron": "0 0 30 2 *"}, "not a cron expression"),
        ({"cron": "* * * * *", "timezone": "Mars/Base"}, "no time zone"),
        ({}, "either a cron expression or an interval"),
        ({"cron": "* * * * *", "every_seconds": 5}, "either a cron expression or an interval"),
        ({"name": "lease", "every_seconds": 5}, "is reserved"),
    ],
)
def test_wrong_schedules_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        schedule(**changes)


def test_intervals_are_read_with_their_unit():
    assert [parse_interval(text) for text in ("90s", "15m", "6h", "1d")] == [90, 900, 21600, 86400]
    for text in ("0s", "5", "m", "-1s", "1w"):
        with pytest.raises(ValueError, match="not an interval"):
            parse_interval(text)


def test_retries_wait_twice_as_long_each_time_up_to_an_hour():
    waits = [schedule(every_seconds=1, retry_delay_seconds=60).retry_delay(n) for n in range(1, 9)]
    assert [wait.total_seconds() for wait in waits] == [60, 120, 240, 480, 960, 1920, 3600, 3600]
