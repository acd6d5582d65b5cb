"""The nodes in the plane, with the best new links: SVG without a drawing library."""

from __future__ import annotations

from collections import Counter

import numpy as np
from markupsafe import Markup, escape

from pipeline.report.data import Array, NodeMap, TopPair
from pipeline.report.plot import Plot

WIDTH, HEIGHT, MARGIN = 960, 560, 14
# Colours of the page that groups may have; other groups share a quiet one.
COLOURS = 10
OTHERS = "others"


def plot_map(node_map: NodeMap, top: list[TopPair]) -> Plot:
    """Dots for nodes, lines for the best new links; hovering a line tells its ends."""
    places = _scale(node_map.points)
    groups = group_colours(node_map)
    dots = []
    for group, variable in groups.items():
        members = [
            place
            for place, name in zip(places, node_map.groups, strict=True)
            if (name if name in groups else OTHERS) == group
        ]
        outline = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in members)
        dots.append(f'<path d="{outline}" style="stroke: var({variable})"/>')
    lines = []
    for (first, second), pair in zip(node_map.links, top, strict=True):
        (x, y), (to_x, to_y) = places[first], places[second]
        title = escape(f"{pair.source} – {pair.target}: {pair.score:.4f}")
        lines.append(
            f'<path d="M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}"><title>{title}</title></path>'
        )
    caption = describe_map(node_map)
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape("Map of the nodes. " + caption)}">'
        f'<g class="dots">{"".join(dots)}</g><g class="new-links">{"".join(lines)}</g></svg>'
    )
    return Plot("map", "Map of the nodes", caption, svg)


def group_colours(node_map: NodeMap) -> dict[str, str]:
    """The colour of every group that has one, the largest group first."""
    counts = Counter(node_map.groups)
    largest = [name for name, _ in counts.most_common(COLOURS)]
    found = {name: f"--series-{place}" for place, name in enumerate(largest, start=1)}
    if len(counts) > COLOURS:
        found = {OTHERS: "--ink-soft"} | found  # drawn first, below the others
    return found


def legend(node_map: NodeMap) -> list[tuple[str, Markup]]:
    """Groups with their colours; empty where there is only one."""
    colours = group_colours(node_map)
    if len(colours) < 2:
        return []
    ordered = sorted(colours.items(), key=lambda item: item[0] == OTHERS)
    return [(name, Markup(f"background: var({variable})")) for name, variable in ordered]


def describe_map(node_map: NodeMap) -> str:
    """What is shown, and how far to trust it."""
    shown = len(node_map.points)
    which = "All nodes" if shown == node_map.num_nodes else f"{shown:,} of the nodes"
    text = f"{which}, at the first two principal components of their positions"
    if len(set(node_map.groups)) > 1:
        text += f", coloured by {node_map.grouped_by}"
    if len(node_map.links):
        text += f"; lines are the {len(node_map.links)} best new links"
    return f"{text}. Two dimensions show only part of a distance."


def _scale(points: Array) -> Array:
    """Into the picture; each axis fills its side."""
    size = np.array([WIDTH, HEIGHT]) - 2 * MARGIN
    low, high = points.min(axis=0), points.max(axis=0)
    share = (points - low) / np.where(high > low, high - low, 1.0)
    scaled: Array = MARGIN + share * size
    return scaled
