"""One figure of a report: SVG that takes its colours and font from the page around it."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from pipeline.report.formats import format_compact

if TYPE_CHECKING:
    from matplotlib.typing import RcKeyType

# Light-theme colours; in the SVG each becomes a CSS variable with the colour as fallback.
INK, GRID = "#5b6472", "#e3e6eb"
SERIES = ("#2f5fc4", "#d9730d", "#2a8a68", "#9a4fb0")
THEME = {INK: "--ink-soft", GRID: "--rule"} | {
    colour: f"--series-{number}" for number, colour in enumerate(SERIES, start=1)
}
WIDTH_INCHES, HEIGHT_INCHES = 5.0, 3.2
# Values further apart than this are drawn on a logarithmic scale.
LOG_SCALE_FROM_RATIO = 100

SETTINGS: dict[RcKeyType, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "peg-report",
    "text.parse_math": False,
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": GRID,
    "axes.titlecolor": INK,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.labelcolor": INK,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "axes.grid": True,
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.size": 0,
    "xtick.major.pad": 6,
    "ytick.major.size": 0,
    "ytick.minor.size": 0,
    "lines.linewidth": 1.8,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
}


@dataclass(frozen=True)
class Plot:
    """A finished figure.

    Args:
        key: Identifier in the page.
        title: Heading.
        caption: What it shows, in words and numbers; read to those who cannot see it.
        svg: An ``<svg>`` element.
    """

    key: str
    title: str
    caption: str
    svg: str


def placeholder(key: str, title: str, reason: str) -> Plot:
    """A figure-sized notice that says why there is nothing to draw."""

    def draw(axes: Any) -> None:
        axes.set_axis_off()
        text = textwrap.fill(reason, width=40)
        axes.text(0.5, 0.5, text, ha="center", va="center", linespacing=1.6)

    # Without a caption: the sentence is already in the figure.
    return replace(render_plot(key, title, reason, draw), caption="")


def render_plot(key: str, title: str, caption: str, draw: Callable[[Any], None]) -> Plot:
    """Draw on fresh axes, under settings of our own, whatever the user's matplotlibrc says."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        figure = Figure(figsize=(WIDTH_INCHES, HEIGHT_INCHES), layout="constrained")
        axes = figure.add_subplot()
        draw(axes)
        for axis in (axes.xaxis, axes.yaxis):
            if axis.get_scale() != "linear" and not isinstance(
                axis.get_major_formatter(), FuncFormatter
            ):  # the default writes powers as TeX, which nothing here reads
                axis.set_major_formatter(FuncFormatter(lambda value, _: format_compact(value)))
        buffer = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(buffer, format="svg", transparent=True, metadata=nothing)
    return Plot(key, title, caption, embed_svg(buffer.getvalue(), key, f"{title}. {caption}"))


def embed_svg(document: str, key: str, label: str) -> str:
    """Turn a matplotlib document into a small, labelled element that follows the page's theme."""
    root = ElementTree.fromstring(document)
    for style in root.findall("{*}defs/{*}style/.."):
        root.remove(style)  # its `*` selector would reach the whole page
    used = set(re.findall(r"""(?:url\(|href=")#([^)"]+)""", document))
    for element in root.iter():
        element.tag = element.tag.partition("}")[2]
        element.tail = None
        if element.tag != "text":
            element.text = None
        attributes = dict(element.attrib)
        element.attrib.clear()
        for name, value in attributes.items():
            name = name.partition("}")[2] or name
            if name != "id" or value in used:
                element.set(name, embed_value(name, value, key))
    box = root.attrib["viewBox"]
    root.attrib.clear()
    root.attrib |= {"xmlns": "http://www.w3.org/2000/svg", "viewBox": box}
    root.attrib |= {"role": "img", "aria-label": label}
    return ElementTree.tostring(root, encoding="unicode")


def embed_value(name: str, value: str, key: str) -> str:
    """One attribute: identifiers of this figure only, two decimals, the page's colours and font."""
    if name == "id":
        return f"{key}-{value}"
    if name == "href":
        return f"#{key}-{value[1:]}"
    if name == "clip-path":
        return f"url(#{key}-{value[5:]}"
    if name in ("d", "x", "y", "transform"):
        value = re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", value)
        return " ".join(value.split())
    if name == "style":
        value = re.sub(r"font-family: [^;]*;? ?", "", value)
        for colour, variable in THEME.items():
            value = value.replace(colour, f"var({variable}, {colour})")
    return value
