"""Metrics of every method in a terminal, however narrow it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from pipeline.report.data import SUFFIXES

SHORT = {"average_precision": "ap"}
# Blanks of rich between two columns.
GAP = 2


def print_metrics(console: Console, protocol: str, rows: list[dict[str, Any]]) -> None:
    """Print values with half the width of their interval; no number is ever cut.

    What does not fit beside the methods goes into further tables below.
    """
    methods = [str(row["method"]).replace("_", " ") for row in rows]
    names = [name for name in rows[0] if name != "method" and not name.endswith(SUFFIXES)]
    columns = [[SHORT.get(name, name), *(_value(row, name) for row in rows)] for name in names]
    first = [protocol, *methods]
    for part in _fitting(columns, console.width - _width(first) - GAP):
        table = Table(
            Column(protocol, no_wrap=True),
            *(Column(column[0], no_wrap=True) for column in part),
            box=None,
        )
        for number, method in enumerate(methods, start=1):
            table.add_row(method, *(column[number] for column in part))
        console.print()
        console.print(table)


def _fitting(columns: list[list[str]], width: int) -> Iterator[list[list[str]]]:
    """Consecutive columns that stand side by side within a width; one at least."""
    part: list[list[str]] = []
    taken = 0
    for column in columns:
        if part and taken + _width(column) + GAP > width:
            yield part
            part, taken = [], 0
        part.append(column)
        taken += _width(column) + GAP
    yield part


def _width(column: list[str]) -> int:
    return max(map(len, column))


def _value(row: dict[str, Any], name: str) -> str:
    low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
    return f"{row[name]:.4f}" + (f" ±{(high - low) / 2:.3f}" if low is not None else "")
