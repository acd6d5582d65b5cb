"""The figures of a report, as SVG that takes its colours and font from the page around it."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from xml.etree import ElementTree

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from peg_core.encoding.spectral.eigengap import stability_ratios
from peg_core.errors import ArtifactMismatch
from pipeline.report.data import Array, ReportData, finite_pairs, roc_points, thin_roc

# Light-theme colours; in the SVG each becomes a CSS variable with the colour as fallback.
INK, GRID = "#5b6472", "#e3e6eb"
SERIES = ("#2f5fc4", "#d9730d", "#2a8a68", "#9a4fb0")
THEME = {INK: "--ink-soft", GRID: "--rule"} | {
    colour: f"--series-{number}" for number, colour in enumerate(SERIES, start=1)
}
DASHES = ("-", (0, (5, 2)))

WIDTH_INCHES, HEIGHT_INCHES = 5.0, 3.2
MAX_CURVE_POINTS = 400
MAX_MARKED_POINTS = 12
MAX_BINS = 200
TEST_BINS = 40
LOG_SCALE_FROM_RATIO = 100

SETTINGS = {
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


Curves = dict[str, tuple[Array, Array]]


def draw_plots(data: ReportData) -> list[Plot]:
    """All figures of a report in reading order; eigenvalues only when there are any."""
    labels, scores, note = finite_pairs(data.test_labels, data.test_scores)
    plots = [
        plot_roc(labels, scores, note),
        plot_test_scores(labels, scores, note),
        plot_calibration(data.calibration),
        plot_epochs(data.epochs, "loss", key="loss", title="Training loss"),
        plot_epochs(data.epochs, "valid_auc", key="valid-auc", title="Validation AUC", rising=True),
        *plot_chosen_by(data.epochs),
        plot_candidate_scores(data.score_histogram),
    ]
    if any(data.eigenvalues.values()):
        plots.append(plot_eigenvalues(data.eigenvalues))
        plots.append(plot_stability(data.eigenvalues))
    return plots


def plot_roc(labels: Array, scores: Array, note: str = "") -> Plot:
    """ROC curve of the test pairs beside the diagonal of a coin toss."""
    key, title = "roc", "ROC curve of the test pairs"
    if not labels.any() or labels.all():
        return placeholder(
            key, title, "A ROC curve needs scored links and scored non-links." + note
        )
    false_rates, true_rates = roc_points(labels, scores)
    area = np.trapezoid(true_rates, false_rates)

    def draw(axes: Any) -> None:
        axes.plot([0, 1], [0, 1], color=INK, linewidth=1, linestyle=(0, (3, 3)), label="chance")
        axes.plot(*thin_roc(false_rates, true_rates), color=SERIES[0], label=f"AUC {area:.4f}")
        axes.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.03), xlabel="false positive rate")
        axes.set_title("true positive rate")
        axes.legend(loc="lower right", reverse=True)

    links = int(labels.sum())
    caption = f"{links:,} links against {len(labels) - links:,} non-links, area {area:.4f}."
    return finish(key, title, caption + note, draw)


def plot_test_scores(labels: Array, scores: Array, note: str = "") -> Plot:
    """How far apart the scores of links and non-links are."""
    key, title = "test-scores", "Scores of the test pairs"
    if not len(scores):
        return placeholder(key, title, "No test pair has a finite score." + note)
    edges = np.linspace(min(0.0, scores.min()), max(1.0, scores.max()), TEST_BINS + 1)
    groups = {"links": scores[labels], "non-links": scores[~labels]}
    groups = {name: values for name, values in groups.items() if len(values)}

    def draw(axes: Any) -> None:
        for (name, values), colour in zip(groups.items(), SERIES, strict=False):
            share = np.histogram(values, bins=edges)[0] / len(values)
            axes.stairs(share, edges, fill=True, color=colour, alpha=0.3)
            axes.stairs(share, edges, color=colour, linewidth=1.4, label=name)
        axes.set(xlabel="score", xlim=(edges[0], edges[-1]))
        axes.set_title("share of the pairs of each kind")
        # In the line of the title, where it cannot hide a bar.
        axes.legend(loc="lower right", bbox_to_anchor=(1, 0.99), ncols=2, borderpad=0)

    medians = (f"{name} {np.median(values):.3f}" for name, values in groups.items())
    caption = f"Median score: {', '.join(medians)}."
    if len(groups) == 1:
        caption += f" The test pairs are all {next(iter(groups))}."
    return finish(key, title, caption + note, draw)


def plot_calibration(curve: list[dict[str, float]]) -> Plot:
    """Share of links by score; on the diagonal a score is the chance of a link."""
    key, title = "calibration", "Calibration on the test pairs"
    rows = [row for row in curve if row["pairs"]]
    if not rows:
        return placeholder(key, title, "No test pair has a finite score.")
    chance, links, pairs = (
        np.array([row[name] for row in rows]) for name in ("probability", "links", "pairs")
    )
    error = float(np.abs(chance - links) @ pairs / pairs.sum())

    def draw(axes: Any) -> None:
        axes.plot([0, 1], [0, 1], color=INK, linewidth=1, linestyle=(0, (3, 3)), label="as scored")
        sizes = 8 + 60 * pairs / pairs.max()
        axes.plot(chance, links, color=SERIES[0], label="share of links")
        axes.scatter(chance, links, s=sizes, color=SERIES[0], zorder=3)
        axes.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.03), xlabel="score, mean of a bin")
        axes.set_title("share of links")
        axes.legend(loc="upper left", reverse=True)

    caption = f"Scores and shares of links differ by {error:.4f} on average ({len(rows)} bins)."
    return finish(key, title, caption, draw)


def plot_epochs(
    epochs: list[dict[str, float]], column: str, *, key: str, title: str, rising: bool = False
) -> Plot:
    """One column of the training log, a curve per seed; ``rising`` when more is better."""
    rows = [
        (row.get("seed", 0.0), row.get("epoch", index), float(row.get(column, np.nan)))
        for index, row in enumerate(epochs, start=1)
    ]
    finite = [row for row in rows if np.isfinite(row[2])]
    if not finite:
        return placeholder(key, title, "No epoch logged a finite value.")
    curves: Curves = {}
    for seed in sorted({row[0] for row in rows}):
        chosen = np.array(sorted(row[1:] for row in rows if row[0] == seed))
        values = np.where(np.isfinite(chosen[:, 1]), chosen[:, 1], np.nan)
        curves[f"seed {seed:g}"] = (chosen[:, 0], values)
    seed, epoch, value = min(finite, key=lambda row: (-row[2] if rising else row[2], row))
    caption = f"{'Highest' if rising else 'Lowest'}: {value:.4f} at epoch {epoch:g}"
    caption += f" of seed {seed:g}." if len(curves) > 1 else "."
    if len(finite) < len(rows):
        caption += f" Left out, without a finite value: {len(rows) - len(finite):,}."
    return finish(key, title, caption, lambda axes: draw_curves(axes, curves, "epoch", "seeds"))


def plot_chosen_by(epochs: list[dict[str, float]]) -> list[Plot]:
    """The metric that decided which epoch is kept, where it was not the AUC."""
    columns = [name for name in (epochs[0] if epochs else {}) if name.startswith("valid_")]
    return [
        plot_epochs(
            epochs,
            column,
            key="valid-metric",
            title=f"Validation {column.removeprefix('valid_').replace('_', ' ')}",
            rising=True,
        )
        for column in columns
        if column != "valid_auc"
    ]


def plot_candidate_scores(histogram: tuple[Array, Array] | None) -> Plot:
    """Histogram of all candidate scores; counts on a log scale when they differ a lot."""
    key, title = "candidate-scores", "Scores of the candidate pairs"
    if histogram is None:
        return placeholder(key, title, "This run scored no candidate pairs.")
    counts, edges = np.asarray(histogram[0], dtype=np.float64), np.asarray(histogram[1])
    if len(edges) != len(counts) + 1:
        raise ArtifactMismatch.of(
            what="counts and edges of the score histogram",
            found=f"{len(edges)} edges",
            needed=f"{len(counts) + 1}",
        )
    total = counts.sum()
    if not (total > 0 and np.isfinite(total) and np.isfinite(edges).all()):
        return placeholder(key, title, "No candidate pair has a finite score.")
    starts = np.arange(0, len(counts), -(-len(counts) // MAX_BINS))
    bars, bounds = np.add.reduceat(counts, starts), np.r_[edges[starts], edges[-1]]
    log = bool(bars.max() > LOG_SCALE_FROM_RATIO * np.median(bars[bars > 0]))

    def draw(axes: Any) -> None:
        axes.stairs(bars, bounds, fill=True, color=SERIES[0], alpha=0.3)
        axes.stairs(bars, bounds, color=SERIES[0], linewidth=1.4)
        axes.set(xlabel="score", xlim=(bounds[0], bounds[-1]))
        axes.set_title("pairs, logarithmic" if log else "pairs")
        if log:
            axes.set_yscale("log", nonpositive="clip")
            axes.set_ylim(bottom=0.7)
            axes.minorticks_off()
        axes.yaxis.set_major_formatter(FuncFormatter(lambda count, _: format_compact(count)))

    caption = f"{total:,.0f} pairs"
    if 0.5 in edges:
        caption += f", {counts[edges[:-1] >= 0.5].sum() / total:.1%} of them score 0.5 or more"
    return finish(key, title, caption + ".", draw)


def plot_eigenvalues(eigenvalues: dict[str, list[float]]) -> Plot:
    """Eigenvalues in order, a curve per encoding; a jump is an eigengap."""
    key, title = "eigenvalues", "Eigenvalues of the encodings"
    curves: Curves = {}
    for name, values in eigenvalues.items():
        finite = np.array([value for value in values if np.isfinite(value)])
        if len(finite):
            curves[name] = (np.arange(1, len(finite) + 1), finite)
    if not curves:
        return placeholder(key, title, "No encoding has finite eigenvalues.")
    ranges = (
        f"{name}: {len(values):,} from {values.min():.4g} to {values.max():.4g}"
        for name, (_, values) in curves.items()
    )
    caption = f"{'; '.join(ranges)}."
    return finish(key, title, caption, lambda axes: draw_curves(axes, curves, "index", "encodings"))


def plot_stability(eigenvalues: dict[str, list[float]]) -> Plot:
    """The stability ratio for every number of dimensions; larger is a better place to cut."""
    key, title = "stability", "Stability ratio by dimensions"
    curves: Curves = {}
    for name, values in eigenvalues.items():
        ratios = stability_ratios([value for value in values if np.isfinite(value)])
        finite = np.isfinite(ratios)
        if finite.any():
            curves[name] = (np.arange(1, len(ratios) + 1)[finite], ratios[finite])
    if not curves:
        return placeholder(key, title, "A ratio needs two distinct eigenvalues.")
    best = (f"{name}: largest after {x[y.argmax()]}" for name, (x, y) in curves.items())
    caption = f"Gap at the cut over the smallest gap before it. {'; '.join(best)}."

    def draw(axes: Any) -> None:
        draw_curves(axes, curves, "dimensions", "encodings")
        if max(y.max() for _, y in curves.values()) > LOG_SCALE_FROM_RATIO:
            axes.set_yscale("symlog", linthresh=1)

    return finish(key, title, caption, draw)


def draw_curves(axes: Any, curves: Curves, xlabel: str, many: str) -> None:
    """Draw curves apart by colour and dash; when those run out, all alike."""
    styles = [(colour, dash) for dash in DASHES for colour in SERIES]
    alike = len(curves) > len(styles)
    for index, (name, (x, y)) in enumerate(curves.items()):
        colour, dash = (SERIES[0], "-") if alike else styles[index]
        kept = np.unique(np.linspace(0, len(x) - 1, MAX_CURVE_POINTS).round().astype(int))
        axes.plot(
            x[kept],
            y[kept],
            color=colour,
            linestyle=dash,
            alpha=0.4 if alike else 1,
            label=(f"{len(curves)} {many}" if index == 0 else None) if alike else name,
            # A line needs two points: mark them when there are few.
            marker="o" if np.isfinite(y).sum() <= MAX_MARKED_POINTS else None,
            markersize=4.5,
        )
    axes.set_xlabel(xlabel)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    if len(curves) > 1:
        axes.legend(ncols=1 if alike or len(curves) <= len(SERIES) else 2)


def format_compact(count: float) -> str:
    """A count in a few characters: ``61.9 M``."""
    for size, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(count) >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.3g}"


def placeholder(key: str, title: str, reason: str) -> Plot:
    """A figure-sized notice that says why there is nothing to draw."""

    def draw(axes: Any) -> None:
        axes.set_axis_off()
        text = textwrap.fill(reason, width=40)
        axes.text(0.5, 0.5, text, ha="center", va="center", linespacing=1.6)

    # Without a caption: the sentence stands in the figure already.
    return replace(finish(key, title, reason, draw), caption="")


def finish(key: str, title: str, caption: str, draw: Callable[[Any], None]) -> Plot:
    """Draw on fresh axes, under settings of our own, whatever the user's matplotlibrc says."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        figure = Figure(figsize=(WIDTH_INCHES, HEIGHT_INCHES), layout="constrained")
        draw(figure.add_subplot())
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
