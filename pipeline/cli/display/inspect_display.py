"""What ``peg inspect`` shows to people: any width from 60 characters, terminal or not."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from peg_core.graph.graph_summary import GraphSummary
from pipeline.config.field_types import BYTES_PER_UNIT
from pipeline.run.progress import show

LONGEST_BAR = 40


def print_graph(console: Console, folder: Path, summary: GraphSummary) -> None:
    """The summary for people; fits a terminal of 60 characters."""
    kind = "weighted" if summary.weighted else "unweighted"
    facts = {
        "nodes": show(summary.nodes),
        "edges": f"{show(summary.edges)}, {kind}",
        "density": show(summary.density),
        "degree": f"mean {show(summary.mean_degree)}, median {show(summary.median_degree)}, "
        f"max {show(summary.max_degree)}",
        "isolated nodes": show(summary.isolated_nodes),
        "components": show(summary.components),
        "largest ones": ", ".join(map(show, summary.largest_components)) or "none",
        "features": f"{show(summary.feature_width)} per node" if summary.feature_width else "none",
        "on disk": show_bytes(summary.disk_bytes),
        "mapped": f"{show_bytes(summary.mapped_bytes)} of memory",
    }
    console.print(readable(console, str(folder)), style="bold", soft_wrap=True)
    _print_facts(console, facts)
    console.print("\nnodes by degree")
    _print_bars(console, summary)
    if summary.hubs:
        console.print("\nhubs")
        _print_nodes(console, "degree", [(h.id, h.index, show(h.degree)) for h in summary.hubs])


def print_movement(console: Console, facts: dict[str, Any]) -> None:
    """The movement for people; fits a terminal of 60 characters."""
    for name in "ab":
        side = facts[name]
        rows, columns = side["shape"]
        source = f", {side['stage']}" if side["stage"] else ""
        text = f"{name.upper()}  {side['file']}  ({rows:,} x {columns}{source})"
        console.print(readable(console, text), soft_wrap=True)
    if {facts[name]["stage"] for name in "ab"} == {"encode", "encode_all"}:
        console.print("note: one is of all edges, the other of the training edges")
    new = f", {show(facts['new_nodes'])} new in B left out" if facts["new_nodes"] else ""
    _print_facts(
        console,
        {
            "nodes": f"{show(facts['compared_nodes'])} compared{new}",
            "eta(A, B)": f"{show(facts['eta'])}, {100 * facts['relative_eta']:.3g} % of A's length",
            "per node": f"mean {show(facts['mean_distance'])}, max {show(facts['max_distance'])}",
        },
    )
    console.print("\nmoved most")
    nodes = [(node["id"], node["index"], show(node["distance"])) for node in facts["moved_most"]]
    _print_nodes(console, "distance", nodes)


def _print_facts(console: Console, facts: dict[str, str]) -> None:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name, value)
    console.print(table)


def _print_bars(console: Console, summary: GraphSummary) -> None:
    """A bar for each bin; one that is not empty has at least a mark."""
    bins = summary.degree_distribution
    most = max(1, *(item.nodes for item in bins))
    names = [show(b.low) if b.low == b.high else f"{show(b.low)}-{show(b.high)}" for b in bins]
    counts = [show(item.nodes) for item in bins]
    room = console.width - max(map(len, names)) - max(map(len, counts)) - 5
    longest = max(1, min(LONGEST_BAR, room))
    mark = "#" if console.options.ascii_only else "█"
    table = Table.grid(padding=(0, 2))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    for name, count, item in zip(names, counts, bins, strict=True):
        table.add_row(name, count, mark * math.ceil(longest * item.nodes / most))
    console.print(table)


def _print_nodes(console: Console, measure: str, nodes: list[tuple[Any, int, str]]) -> None:
    """Nodes with a measure; ids only where they are known."""
    known = any(name is not None for name, _, _ in nodes)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(measure, justify="right", no_wrap=True)
    table.add_column("index", justify="right", no_wrap=True)
    if known:
        table.add_column("id", overflow="fold")
    for name, index, value in nodes:
        table.add_row(value, str(index), *([readable(console, str(name))] if known else []))
    console.print(table)


def readable(console: Console, text: str) -> Text:
    """The user's text unchanged, escaped where the terminal could not show it."""
    if text.isprintable() and (text.isascii() or not console.options.ascii_only):
        return Text(text)
    return Text(text.encode("unicode_escape").decode())


def show_bytes(size: int) -> str:
    """A size as the configuration writes it, such as 2.5 GB."""
    fitting = [unit for unit, scale in BYTES_PER_UNIT.items() if scale <= size]
    unit = fitting[-1] if fitting else "B"
    return f"{show(size / BYTES_PER_UNIT[unit])} {unit}"
