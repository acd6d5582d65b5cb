from __future__ import annotations

import pytest

from pipeline.report.formats import format_compact, format_count, format_seconds, format_time


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (999, "999"), (1500, "1.5 k"), (61_859_140, "61.9 M"), (1.6e9, "1.6 B")],
)
def test_compact_counts(count, text):
    assert format_compact(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0.00 s"),
        (9.994, "9.99 s"),
        (9.996, "10.0 s"),
        (59.96, "1 min 00 s"),
        (245, "4 min 05 s"),
        (3599.7, "1 h 00 min"),
        (7380, "2 h 03 min"),
        (float("nan"), "–"),
    ],
)
def test_seconds_are_readable(seconds, text):
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1234567, "1,234,567"), (0.00041249, "0.0004125"), (float("inf"), "–"), ("x", "x")],
)
def test_counts_are_readable(value, text):
    assert format_count(value) == text


@pytest.mark.parametrize(
    ("created", "text"),
    [
        ("2025-03-01T09:05:59+00:00", "2025-03-01 09:05 UTC"),
        ("2025-03-01T09:05:59", "2025-03-01 09:05"),
        ("yesterday", "yesterday"),
    ],
)
def test_times_are_readable(created, text):
    assert format_time(created) == text
