"""A length of time as users write it: ``90d``, or a number in the unit of integer times."""

from __future__ import annotations

import re

import pyarrow as pa

from peg_core.errors import InputError

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400, "y": 365.25 * 86_400}
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
# Dates are stored as milliseconds.
DATES = "ms"


def parse_half_life(value: object) -> object:
    """A checked text or number, as it was written."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"found {value!r}, needed a length of time such as 90d, or a number")
    if isinstance(value, str) and not re.fullmatch(r"\d+(\.\d+)?[smhdwy]", value):
        raise ValueError(
            f"found {value!r}, needed a number with one of s, m, h, d, w, y, such as 90d; or a "
            "number alone where the times are integers"
        )
    number = float(value[:-1]) if isinstance(value, str) else value
    if not number > 0:
        raise ValueError(f"found {value!r}, needed a time above 0")
    return value


def in_stored_units(half_life: str | float, file: str, column: str, kind: pa.DataType) -> float:
    """The half-life in the unit that times of a column are stored in."""
    if pa.types.is_integer(kind):
        if isinstance(half_life, str):
            raise InputError(
                f"column {column!r} of {file} holds integers, whose unit nobody knows, and "
                f"`graph.half_life` is {half_life}; give a number in the unit of the column"
            )
        return float(half_life)
    if not isinstance(half_life, str):
        raise InputError(
            f"column {column!r} of {file} holds {kind}, and `graph.half_life` is {half_life} "
            "without a unit; write for example 90d"
        )
    unit = kind.unit if pa.types.is_timestamp(kind) else DATES
    return float(half_life[:-1]) * SECONDS[half_life[-1]] * PER_SECOND[unit]
