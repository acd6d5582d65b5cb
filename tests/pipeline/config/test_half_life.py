"""Lengths of time, in the unit in which times are stored."""

import datetime

import pyarrow as pa
import pytest

from peg_core.errors import InputError
from pipeline.config.graph_section import GraphConfig
from pipeline.config.half_life import in_stored_units


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("90d", datetime.timedelta(days=90)),
        ("1.5h", datetime.timedelta(hours=1.5)),
        ("2w", datetime.timedelta(weeks=2)),
        ("30s", datetime.timedelta(seconds=30)),
        ("5m", datetime.timedelta(minutes=5)),
    ],
)
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_length_of_time_is_that_of_datetime(text, length, unit):
    assert GraphConfig(edges="e", time="day", half_life=text).half_life == text
    found = in_stored_units(text, "f", "day", pa.timestamp(unit))
    assert found == pytest.approx(length / datetime.timedelta(microseconds=1) * {
        "s": 1e-6, "ms": 1e-3, "us": 1, "ns": 1e3
    }[unit])  # fmt: skip
    assert in_stored_units(text, "f", "day", pa.date32()) == length / datetime.timedelta(
        milliseconds=1
    )


def test_integers_need_a_number_and_dates_a_unit():
    assert in_stored_units(90, "f", "day", pa.int64()) == 90
    with pytest.raises(InputError, match="'day' of f holds integers, whose unit nobody knows"):
        in_stored_units("90d", "f", "day", pa.int32())
    with pytest.raises(InputError, match="is 90 without a unit; write for example 90d"):
        in_stored_units(90, "f", "day", pa.date32())


@pytest.mark.parametrize("value", ["90", "d", "-3d", "0d", "1 d", 0, -1, True, float("nan"), [1]])
def test_what_is_no_length_of_time_is_refused(value):
    with pytest.raises(ValueError, match="needed a"):
        GraphConfig(edges="e", time="day", half_life=value)


def test_edges_without_times_cannot_fade():
    with pytest.raises(ValueError, match="`half_life` needs `time`"):
        GraphConfig(edges="e", half_life="90d")


def test_what_never_fades_depends_on_nothing_new():
    assert "half_life" not in GraphConfig(edges="e").dependencies()
