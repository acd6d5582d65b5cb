from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.schedule.field_checks import parse_interval
from pipeline.schedule.schedule import Schedule

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
        ({"name": "a\n", "every_seconds": 5}, "name is 'a.*control characters"),
        ({"name": "../a", "every_seconds": 5}, "cannot name a schedule"),
        ({"name": "a" * 101, "every_seconds": 5}, "cannot name a schedule"),
        ({"cron": "30 2 * * *\n* * * * * id"}, "control characters"),
        ({"cron": "30\t2 * * *"}, "control characters"),
        ({"cron": "\u0663 2 * * *"}, "not a cron expression"),
        ({"cron": f"{'9' * 5000} * * * *"}, "longer than 200"),
        ({"cron": "* * * * *", "timezone": "Europe"}, "no time zone"),
        ({"cron": "* * * * *", "timezone": "a" * 5000}, "no time zone"),
        ({"cron": "* * * * *", "timezone": "UTC\nMAILTO=x"}, "control characters"),
        ({"every_seconds": 0}, "at least 1 s and at most 10 years"),
        ({"every_seconds": 10**25}, "at least 1 s and at most 10 years"),
        ({"every_seconds": 5, "retries": -1}, "0 to 100"),
        ({"every_seconds": 5, "retries": 10**9}, "0 to 100"),
        ({"every_seconds": 5, "retry_delay_seconds": 0}, "at most a day"),
        ({"every_seconds": 5, "retry_delay_seconds": float("inf")}, "at most a day"),
        ({"every_seconds": 5, "retry_delay_seconds": float("nan")}, "at most a day"),
        ({"every_seconds": 5, "config": "c.yaml"}, "config is 'c.yaml'; an absolute path"),
        ({"every_seconds": 5, "config": "/a\nb"}, "config is '/a.*control characters"),
        ({"every_seconds": 5, "folder": "/a\x00b"}, "folder is '/a.*control characters"),
        ({"every_seconds": 5, "folder": "/a\udcff"}, "folder is '/a.*not UTF-8"),
        ({"every_seconds": 5, "overrides": ("a=b\x1b[2J",)}, "overrides is .*control characters"),
        ({"every_seconds": 5, "address": "http://a\r\nb"}, "address is .*control characters"),
        ({"every_seconds": 5, "working_dir": "/a\u2028b"}, "working_dir is .*control characters"),
        ({"every_seconds": 5, "created": datetime(2026, 1, 1)}, "timezone"),
        (
            {"every_seconds": 86400, "created": datetime(9999, 12, 31, 12, tzinfo=UTC)},
            "never comes",
        ),
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
    for text in ("99999999999999999999d", "3651d", "9" * 5000 + "s"):
        with pytest.raises(ValueError, match=r"at least 1 s and at most 10 years \(3650d\)"):
            parse_interval(text)
    assert parse_interval("3650d") == 3650 * 86400


def test_retries_wait_twice_as_long_each_time_up_to_an_hour():
    waits = [schedule(every_seconds=1, retry_delay_seconds=60).retry_delay(n) for n in range(1, 9)]
    assert [wait.total_seconds() for wait in waits] == [60, 120, 240, 480, 960, 1920, 3600, 3600]
    patient = schedule(every_seconds=1, retry_delay_seconds=7200, retries=100)
    assert {patient.retry_delay(n).total_seconds() for n in (1, 2, 100, 10**6)} == {7200}


@given(st.integers(), st.integers(), st.floats(), st.text(), st.text())
def test_what_is_accepted_can_be_counted_and_what_is_not_is_told(every, retries, delay, name, path):
    facts = {"every_seconds": every, "retries": retries, "retry_delay_seconds": delay}
    try:
        accepted = schedule(**facts, name=name, config=f"/{path}", overrides=(path,))
    except ValueError:
        return
    assert accepted.next_tick(datetime.now(UTC)) is not None
    assert accepted.retry_delay(retries + 1) <= timedelta(days=1)
    assert Schedule.model_validate_json(accepted.model_dump_json()) == accepted
