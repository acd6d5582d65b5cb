"""Findings as tables that fit into 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from pipeline.cli.doctor.check import Check
from workers.ray_nodes.node_report import NodeAnswer

COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


def print_checks(console: Console, checks: Sequence[Check]) -> None:
    """Every finding in a line."""
    # folded, not cut: paths must stay readable
    texts = (Column(name, overflow="fold") for name in ("found", "what to do"))
    table = Table("check", "state", *texts, box=None)
    for check in checks:
        colour = COLOURS[check.state]
        state = f"[{colour}]{check.state}[/{colour}]"
        table.add_row(check.name, state, escape(check.found), escape(check.advice))
    console.print(table)


def print_nodes(console: Console, answers: Sequence[NodeAnswer]) -> None:
    """What every node has, and its versions."""
    numbers = ("CPUs", "GPUs", "memory", "free", "clock")
    size = Table("node", *(Column(name, justify="right") for name in numbers),
                 Column("cache", overflow="fold"), box=None)  # fmt: skip
    packages: Table | None = None
    for node in answers:
        report = node.report
        if report is None:
            continue
        size.add_row(
            node.name, f"{node.cpus:g}", f"{node.gpus:g}", f"{report['memory_bytes'] / 1e9:.1f} GB",
            f"{report['cache_free_bytes'] / 1e9:.1f} GB", f"{node.skew_seconds:+.1f} s",
            escape(report["cache"]),
        )  # fmt: skip
        packages = packages or Table("node", *report["versions"], box=None)
        packages.add_row(node.name, *report["versions"].values())
    if packages is not None:
        for table in (size, packages):
            console.print()
            console.print(table)
