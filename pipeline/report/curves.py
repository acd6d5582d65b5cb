"""Figures made of curves: a line per seed of the training, or per encoding."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np
from matplotlib.ticker import FuncFormatter, MaxNLocator

from peg_core.encoding.spectral.eigengap import stability_ratios
from pipeline.report.data import Array, DegreeClass
from pipeline.report.plot import LOG_SCALE_FROM_RATIO, SERIES, Plot, placeholder, render_plot

DASHES = ("-", (0, (5, 2)))
STYLES = [(colour, dash) for dash, colour in product(DASHES, SERIES)]
MAX_CURVE_POINTS = 400
MAX_MARKED_POINTS = 12

Curves = dict[str, tuple[Array, Array]]


class EpochValue(NamedTuple):
    """What one seed logged in one epoch."""

    seed: float
    epoch: float
    value: float


def plot_epochs(
    epochs: list[dict[str, float]], column: str, *, key: str, title: str, rising: bool = False
) -> Plot:
    """One column of the training log, a curve per seed; ``rising`` when more is better."""
    logged = [
        EpochValue(row.get("seed", 0.0), row.get("epoch", index), float(row.get(column, np.nan)))
        for index, row in enumerate(epochs, start=1)
    ]
    finite = [entry for entry in logged if np.isfinite(entry.value)]
    if not finite:
        return placeholder(key, title, "No epoch logged a finite value.")
    curves = curves_by_seed(logged)
    caption = describe_best(finite, rising=rising, several_seeds=len(curves) > 1)
    if len(finite) < len(logged):
        caption += f" Left out, without a finite value: {len(logged) - len(finite):,}."
    return render_plot(
        key, title, caption, lambda axes: draw_curves(axes, curves, "epoch", "seeds")
    )


def curves_by_seed(logged: list[EpochValue]) -> Curves:
    """Values over epochs for every seed; what is not finite leaves a gap."""
    curves: Curves = {}
    for seed in sorted({entry.seed for entry in logged}):
        points = sorted((entry.epoch, entry.value) for entry in logged if entry.seed == seed)
        epochs, values = np.array(points).T
        curves[f"seed {seed:g}"] = (epochs, np.where(np.isfinite(values), values, np.nan))
    return curves


def describe_best(finite: list[EpochValue], *, rising: bool, several_seeds: bool) -> str:
    """``Highest: 0.9000 at epoch 2 of seed 7.``, the first one where several are equal."""
    sign = -1 if rising else 1
    best = min(finite, key=lambda entry: (sign * entry.value, entry))
    of_seed = f" of seed {best.seed:g}" if several_seeds else ""
    return (
        f"{'Highest' if rising else 'Lowest'}: {best.value:.4f} at epoch {best.epoch:g}{of_seed}."
    )


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
    return render_plot(
        key, title, caption, lambda axes: draw_curves(axes, curves, "index", "encodings")
    )


def plot_stability(eigenvalues: dict[str, list[float]]) -> Plot:
    """The stability ratio for every number of dimensions; cut where it is large."""
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
            # its own labels are formulas, and formulas are not drawn
            axes.yaxis.set_major_formatter(FuncFormatter(lambda ratio, _: f"{ratio:g}"))

    return render_plot(key, title, caption, draw)


def plot_degrees(classes: list[DegreeClass], model: str, rival: str | None) -> Plot:
    """How well links are told from non-links, by the smaller degree of their ends."""
    key, title = "by-degree", "Quality by degree"
    if not classes:
        return placeholder(key, title, "Too few test links to tell them apart by degree.")
    names = [model, *([rival] if rival else [])]

    def draw(axes: Any) -> None:
        for number, name in enumerate(names):
            values = [each.aucs[number] for each in classes]
            axes.plot(range(len(classes)), values, color=SERIES[number], marker="o", label=name)
        axes.set_xticks(range(len(classes)), [each.degrees for each in classes])
        axes.set_xlabel("training edges of the end that has fewer")
        axes.set_title("AUC")
        axes.legend(loc="best")

    counts = ", ".join(f"{each.degrees}: {each.links:,}" for each in classes)
    caption = f"Links of each degree against all non-links of the test. Links by degree: {counts}."
    return render_plot(key, title, caption, draw)


def draw_curves(axes: Any, curves: Curves, xlabel: str, many: str) -> None:
    """Draw curves apart by colour and dash; when those run out, all alike."""
    alike = len(curves) > len(STYLES)
    for index, (name, (x, y)) in enumerate(curves.items()):
        if alike:
            label = f"{len(curves)} {many}" if index == 0 else None
            draw_curve(axes, x, y, color=SERIES[0], linestyle="-", alpha=0.4, label=label)
        else:
            colour, dash = STYLES[index]
            draw_curve(axes, x, y, color=colour, linestyle=dash, alpha=1, label=name)
    axes.set_xlabel(xlabel)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    if len(curves) > 1:
        axes.legend(ncols=1 if alike or len(curves) <= len(SERIES) else 2)


def draw_curve(axes: Any, x: Array, y: Array, **style: Any) -> None:
    """Draw one curve, thinned where it has many points."""
    kept = np.unique(np.linspace(0, len(x) - 1, MAX_CURVE_POINTS).round().astype(int))
    # A line needs two points: mark them when there are few.
    marker = "o" if np.isfinite(y).sum() <= MAX_MARKED_POINTS else None
    axes.plot(x[kept], y[kept], marker=marker, markersize=4.5, **style)
