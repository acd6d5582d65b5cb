"""The figures of a report: test pairs and candidates here, training and encodings in `curves`."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.ticker import FuncFormatter

from peg_core.errors import ArtifactMismatch
from pipeline.report.curves import (
    plot_chosen_by,
    plot_degrees,
    plot_eigenvalues,
    plot_epochs,
    plot_stability,
)
from pipeline.report.data import Array, ReportData, finite_pairs, roc_points, thin_roc
from pipeline.report.formats import format_compact
from pipeline.report.plot import (
    INK,
    LOG_SCALE_FROM_RATIO,
    SERIES,
    Plot,
    placeholder,
    render_plot,
)
from pipeline.report.summary import name_method

MAX_BINS = 200
TEST_BINS = 40


def draw_plots(data: ReportData) -> list[Plot]:
    """All figures of a report in reading order; eigenvalues only when there are any."""
    labels, scores, note = finite_pairs(data.test_labels, data.test_scores)
    plots = [
        plot_roc(labels, scores, note),
        plot_test_scores(labels, scores, note),
        plot_calibration(data.calibration),
        plot_degrees(data.by_degree, _model_name(data), data.rival and name_method(data.rival)),
        plot_epochs(data.epochs, "loss", key="loss", title="Training loss"),
        plot_epochs(data.epochs, "valid_auc", key="valid-auc", title="Validation AUC", rising=True),
        *plot_chosen_by(data.epochs),
        plot_candidate_scores(data.score_histogram),
    ]
    if any(data.eigenvalues.values()):
        plots.append(plot_eigenvalues(data.eigenvalues))
        plots.append(plot_stability(data.eigenvalues))
    return plots


def _model_name(data: ReportData) -> str:
    rows = next(iter(data.metrics.values()), [])
    return name_method(str(rows[0]["method"])) if rows else "model"


def plot_roc(labels: Array, scores: Array, note: str = "") -> Plot:
    """ROC curve of the test pairs, with the diagonal of a coin toss."""
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
    return render_plot(key, title, caption + note, draw)


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
    return render_plot(key, title, caption + note, draw)


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
    return render_plot(key, title, caption, draw)


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
    return render_plot(key, title, caption + ".", draw)
