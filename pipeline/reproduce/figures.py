"""The figures of an experiment: curves over a varied setting, and what else was looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import polars as pl

from pipeline.report.curves import Curves, draw_curves, plot_eigenvalues, plot_stability
from pipeline.report.formats import format_metric_name
from pipeline.report.plot import Plot, render_plot
from pipeline.reproduce.experiment import Experiment
from pipeline.reproduce.grid import rows_of

RUG_SHARE = 0.03


def draw_figures(
    name: str, experiment: Experiment, table: pl.DataFrame, curves: pl.DataFrame
) -> Iterator[Plot]:
    """All figures of an experiment in reading order.

    Args:
        table: Means of all its results, as ``summarise_results`` gives them.
        curves: Points of what it measures beside the metrics.
    """
    if experiment.vary is not None:
        yield from plot_variation(name, experiment, table)
    for measure in experiment.measures:
        own = curves.filter(pl.col("measure") == measure)
        if len(own):
            yield from FIGURES[measure](name, experiment, own)


def plot_variation(name: str, experiment: Experiment, table: pl.DataFrame) -> Iterator[Plot]:
    """The metric over the values of the varied setting, a figure for every graph."""
    assert experiment.vary is not None  # what has no such setting has no such figure
    metric, axis = format_metric_name(experiment.metric), experiment.vary.title
    shown = table.filter(
        pl.col("metric") == experiment.metric, pl.col("protocol") == experiment.protocol
    )
    means = {
        (row["graph"], row["method"], row["features"]): row["mean"] for row in shown.to_dicts()
    }
    for graph in experiment.graphs:
        points: dict[str, list[tuple[float, float]]] = {}
        for variant, features in rows_of(experiment):
            mean = means.get((graph, variant.name, features))
            if mean is not None and variant.value is not None:
                title = experiment.method_title(variant.method)
                label = title if len(experiment.features) == 1 else f"{title}, {features}"
                points.setdefault(label, []).append((variant.value, 100 * mean))
        if points:
            drawn = {label: _columns(found) for label, found in points.items()}
            best = max((y.max(), label, x[y.argmax()]) for label, (x, y) in drawn.items())
            yield render_plot(
                f"{name}-{graph}-variation",
                f"{experiment.graph_title(graph)}: {metric} by {axis}",
                f"Highest: {best[0]:.2f} of {best[1]} at {best[2]:g}.",
                _drawing(drawn, axis, "methods"),
            )


def plot_edge_weights(name: str, experiment: Experiment, curves: pl.DataFrame) -> Iterator[Plot]:
    """The learnt weight of an edge over the distance of its ends, a figure for every graph."""
    for graph, drawn in _by_graph(experiment, curves).items():
        ranges = (
            f"{label}: {y.min():.2f} to {y.max():.2f} over {len(x):,} observed edges"
            for label, (x, y) in drawn.items()
        )
        yield render_plot(
            f"{name}-{graph}-weights",
            f"{experiment.graph_title(graph)}: learnt edge weights",
            f"{'; '.join(ranges)}. Strokes: the edges.",
            _drawing(drawn, "what the gate reads of an edge", "methods", rug=True),
        )


def plot_spectra(name: str, experiment: Experiment, curves: pl.DataFrame) -> Iterator[Plot]:
    """Eigenvalues and stability ratios, a curve for every graph."""
    values = {
        label: list(y)
        for graph, drawn in _by_graph(experiment, curves).items()
        for label, (_, y) in [(experiment.graph_title(graph), next(iter(drawn.values())))]
    }
    for plot in (plot_eigenvalues, plot_stability):
        found = plot(values)
        yield Plot(
            f"{name}-{found.key}",
            found.title,
            found.caption,
            found.svg.replace(f"{found.key}-", f"{name}-{found.key}-"),
        )


FIGURES: dict[str, Callable[[str, Experiment, pl.DataFrame], Iterator[Plot]]] = {
    "edge_weights": plot_edge_weights,
    "eigenvalues": plot_spectra,
}


def _by_graph(experiment: Experiment, curves: pl.DataFrame) -> dict[str, Curves]:
    """For every graph the curve of every method."""
    titles = {variant.name: variant.method for variant, _ in rows_of(experiment)}
    found: dict[str, Curves] = {}
    for (graph, method), points in curves.group_by("graph", "method", maintain_order=True):
        if graph in experiment.graphs and method in titles:
            label = experiment.method_title(titles[str(method)])
            found.setdefault(str(graph), {})[label] = (
                points["x"].to_numpy(),
                points["y"].to_numpy(),
            )
    return {graph: found[graph] for graph in experiment.graphs if graph in found}


def _columns(points: list[tuple[float, float]]) -> tuple[Any, Any]:
    x, y = np.array(sorted(points)).T
    return x, y


def _drawing(curves: Curves, axis: str, many: str, *, rug: bool = False) -> Callable[[Any], None]:
    def draw(axes: Any) -> None:
        draw_curves(axes, curves, axis, many)
        if not rug:
            return
        axes.xaxis.set_major_locator(_free_ticks())
        low, high = axes.get_ylim()
        for line, (x, _) in zip(list(axes.get_lines()), curves.values(), strict=False):
            # one line with gaps: a stroke for every edge would be an element for every edge
            strokes = np.repeat(x, 3)
            heights = np.tile([low - RUG_SHARE * (high - low), low, np.nan], len(x))
            axes.plot(strokes, heights, color=line.get_color(), alpha=0.4, linewidth=0.6)

    return draw


def _free_ticks() -> Any:
    """Ticks that need not be whole numbers, as distances are not."""
    from matplotlib.ticker import AutoLocator

    return AutoLocator()
