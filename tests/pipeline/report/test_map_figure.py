"""The map: every node and link is drawn where it belongs, in the colour of its group."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np

from pipeline.report.data import NodeMap, TopPair
from pipeline.report.map_figure import (
    HEIGHT,
    MARGIN,
    OTHERS,
    WIDTH,
    group_colours,
    legend,
    plot_map,
)

POINTS = np.array([[0.0, 0.0], [1.0, 2.0], [0.5, 1.0]])
PAIR = TopPair("<ann>", "bob & co", 0.987654, 2, (3, 1))
MAP = NodeMap(POINTS, ["a", "b", "a"], "kind", np.array([[0, 1]]), 3)


def paths(svg, group):
    parts = ElementTree.fromstring(svg).findall("{*}g")
    [found] = [part for part in parts if part.get("class") == group]
    return found.findall("{*}path")


def test_a_dot_stands_for_every_node_and_a_line_for_every_new_link():
    plot = plot_map(MAP, [PAIR])
    far = (WIDTH - MARGIN, HEIGHT - MARGIN)
    first, second = paths(plot.svg, "dots")
    assert first.get("d") == (
        f"M{MARGIN}.0 {MARGIN}.0h0M{WIDTH / 2:.1f} {HEIGHT / 2:.1f}h0"
    )  # the two nodes of the larger group
    assert second.get("d") == f"M{far[0]}.0 {far[1]}.0h0"
    [line] = paths(plot.svg, "new-links")
    assert line.get("d") == f"M{MARGIN}.0 {MARGIN}.0L{far[0]}.0 {far[1]}.0"
    assert line.findtext("{*}title") == "<ann> – bob & co: 0.9877"
    assert plot.caption.startswith("All nodes, at the first two principal components")
    assert "coloured by kind; lines are the 1 best" in plot.caption


def test_groups_beyond_the_colours_share_a_quiet_one():
    names = [f"g{number}" for number in range(12)] + ["g3"]
    many = NodeMap(np.random.default_rng(0).random((13, 2)), names, "class", np.empty((0, 2)), 99)
    colours = group_colours(many)
    assert len(colours) == 11
    assert colours["g3"] == "--series-1"
    assert legend(many)[-1] == (OTHERS, "background: var(--ink-soft)")
    dots = "".join(path.get("d") or "" for path in paths(plot_map(many, []).svg, "dots"))
    assert dots.count("M") == 13
    assert plot_map(many, []).caption.startswith("13 of the nodes,")


def test_one_group_needs_no_legend():
    alone = NodeMap(POINTS, ["all"] * 3, "component", np.empty((0, 2), int), 3)
    assert legend(alone) == []
    assert "coloured" not in plot_map(alone, []).caption
