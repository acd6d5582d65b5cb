from __future__ import annotations

import dataclasses
import io
from pathlib import Path

import pytest
from rich.console import Console

from peg_core.graph.graph_summary import DegreeBin, GraphSummary, Hub
from pipeline.cli.display.inspect_display import print_graph, print_movement, readable, show_bytes

BILLIONS = GraphSummary(
    nodes=2_000_000_000,
    edges=30_000_000_000,
    weighted=True,
    density=1.5e-8,
    mean_degree=30.0,
    median_degree=12.5,
    max_degree=1_900_000_000,
    degree_distribution=[
        DegreeBin(0, 0, 400_000_000),
        DegreeBin(1, 15, 1_599_999_999),
        DegreeBin(16, 536_870_911, 0),
        DegreeBin(536_870_912, 2_147_483_647, 1),
    ],
    isolated_nodes=400_000_000,
    components=400_000_007,
    largest_components=[1_599_000_000, 900_000, 99_990, 10, 1],
    hubs=[Hub("node-" + "x" * 100, 1_999_999_999, 1_900_000_000), Hub("[red]0[/red]", 5, 7)],
    feature_width=1_433,
    disk_bytes=260_000_000_000,
    mapped_bytes=256_000_000_000,
)
NODE = {"id": None, "index": 1_999_999_999, "distance": 0.123456789}
MOVEMENT = {
    "a": {"file": "a.npy", "stage": None, "shape": [1_999_999_990, 128]},
    "b": {"file": "b.npy", "stage": None, "shape": [2_000_000_000, 128]},
    "compared_nodes": 1_999_999_990,
    "new_nodes": 10,
    "eta": 1234.5678,
    "relative_eta": 0.0123456,
    "mean_distance": 0.0123456,
    "max_distance": 1.23456,
    "moved_most": [NODE],
}


def console(width, encoding="utf-8", terminal=False):
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
    return Console(file=file, width=width, highlight=False, force_terminal=terminal)


def printed(target):
    return target.file.buffer.getvalue().decode(target.file.encoding)


def graph_lines(width, summary=BILLIONS, **options):
    target = console(width, **options)
    print_graph(target, Path("store"), summary)
    return printed(target).splitlines()


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_graph_of_billions_fits_the_width_with_nothing_cut_off(width):
    lines = graph_lines(width)
    assert max(map(len, lines)) <= width
    text = "".join("".join(lines).split())
    for part in ("536,870,912-2,147,483,647", "1,599,999,999", "[red]0[/red]", "1999999999"):
        assert part in text
    assert text.count("x") >= 100
    assert "…" not in text


@pytest.mark.parametrize("width", [60, 120])
def test_bars_grow_with_the_nodes_and_one_node_shows(width):
    lengths = [line.count("█") for line in graph_lines(width) if "█" in line]
    assert len(lengths) == 3  # the empty bin has none
    fewer, most, one = lengths
    assert one == 1
    assert fewer == pytest.approx(most / 4, abs=1)
    assert most > 8


def test_a_terminal_gets_the_same_words(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    styled = "\n".join(graph_lines(80, terminal=True))
    assert "\x1b[1m" in styled
    assert "2,000,000,000" in styled


def test_an_ascii_terminal_gets_only_ascii():
    hub = dataclasses.replace(BILLIONS, hubs=[Hub("Zürich", 3, 9)])
    text = "\n".join(graph_lines(60, hub, encoding="ascii"))
    assert "##" in text
    assert "Z\\xfcrich" in text


def test_an_empty_graph_is_shown():
    empty = dataclasses.replace(
        BILLIONS, nodes=0, hubs=[], largest_components=[], feature_width=None,
        degree_distribution=[DegreeBin(0, 0, 0)],
    )  # fmt: skip
    text = "\n".join(graph_lines(60, empty))
    assert "hubs" not in text
    assert "█" not in text
    assert text.count("none") == 2


def test_control_characters_in_ids_do_not_reach_the_terminal():
    assert readable(console(60), "a\x1b[2J\nb").plain == r"a\x1b[2J\nb"
    assert readable(console(60), "Zürich [b]").plain == "Zürich [b]"


@pytest.mark.parametrize("width", [60, 100])
def test_a_movement_fits_the_width(width):
    target = console(width)
    print_movement(target, MOVEMENT)
    lines = printed(target).splitlines()
    assert max(map(len, lines)) <= width
    assert "1,999,999,990 compared, 10 new in B left out" in printed(target)
    assert "1235, 1.23 % of A's length" in printed(target)
    assert "note" not in printed(target)


def test_encodings_of_different_graphs_are_noted():
    sides = {name: {**MOVEMENT[name], "stage": stage} for name, stage in
             (("a", "encode"), ("b", "encode_all"))}  # fmt: skip
    target = console(60)
    print_movement(target, {**MOVEMENT, **sides})
    assert "note: one is of all edges, the other of the training edges" in printed(target)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1_000, "1 KB"), (25 * 10**8, "2.5 GB"), (4 * 10**15, "4000 TB")],
)
def test_sizes_are_written_as_in_a_configuration(size, text):
    assert show_bytes(size) == text
