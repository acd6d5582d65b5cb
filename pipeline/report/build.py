"""From the numbers of a run to one HTML page that is complete in itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from pipeline.config.redaction import redact, redact_all
from pipeline.report.data import SUFFIXES, NodeMap, ReportData, StageRow, TopPair
from pipeline.report.figures import draw_plots
from pipeline.report.formats import (
    DASH,
    as_number,
    format_compact,
    format_count,
    format_metric,
    format_metric_name,
    format_seconds,
    format_time,
    format_words,
)
from pipeline.report.map_figure import legend, plot_map
from pipeline.report.plot import Plot
from pipeline.report.summary import best_rival, name_method, summarise_in_words

PROTOCOL_NAMES = {
    "random": "Links against drawn non-links",
    "given": "Links against the given non-links",
    "heart": "Every link against hard non-links of its own (HeaRT)",
    "recommend": "All partners of a node that it is not known to have",
}
# Figures that share a row, each with its part of the heading.
SECTIONS = (
    {
        "roc": "Test pairs",
        "test-scores": "Test pairs",
        "calibration": "Test pairs",
        "by-degree": "Test pairs",
    },
    {"loss": "Training", "valid-auc": "Training", "valid-metric": "Training"},
    {"eigenvalues": "Encodings", "stability": "Encodings"},
    {"candidate-scores": "Candidates"},
)
COMPACT_FROM = 1_000_000

Metrics = dict[str, float | str]


@dataclass(frozen=True)
class Tile:
    """A number of the summary, with a line of small print."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Cell:
    """A value of the metrics table, with its interval and its spread over seeds."""

    text: str
    interval: str = ""
    spread: str = ""
    best: bool = False


@dataclass(frozen=True)
class MetricsTable:
    """The metrics of one protocol."""

    key: str
    title: str
    columns: list[str]
    methods: list[tuple[str, list[Cell]]]


def build_report(data: ReportData) -> str:
    """Render the report.

    Args:
        data: Everything that is shown; names and paths may hold any characters. Secrets in the
            configuration, the paths and the warnings are masked.

    Returns:
        A complete HTML document: styles and figures inline, no scripts, no requests.
    """
    data = replace(
        data,
        config_yaml=redact(data.config_yaml),
        outputs=redact_all(data.outputs),
        warnings=redact_all(data.warnings),
    )
    source = resources.files("pipeline.report").joinpath("template.html").read_text("utf-8")
    return render_page(
        source,
        data=data,
        created=format_time(data.created),
        summary=summarise_in_words(data.metrics),
        tiles=summarise(data),
        map=None if data.node_map is None else map_of(data.node_map, data.top),
        tables=[metrics_table(name, rows) for name, rows in data.metrics.items()],
        sections=group_plots(draw_plots(data)),
        stages=[describe_stage(stage, data.stages) for stage in data.stages],
        total_time=format_seconds(sum_seconds(data.stages)),
    )


def render_page(source: str, **values: object) -> str:
    """A page from its template, in the style that all pages share."""
    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    style = resources.files("pipeline.report").joinpath("style.css").read_text("utf-8")
    return environment.from_string(source).render(style=Markup(style), **values)


def map_of(node_map: NodeMap, top: list[TopPair]) -> dict[str, object]:
    """The map and what its colours mean."""
    plot = plot_map(node_map, top)
    return {"plot": plot, "svg": Markup(plot.svg), "legend": legend(node_map)}


def _headline(model: Mapping[str, object]) -> tuple[str, ...]:
    """The metrics that come first, by what the first protocol measures."""
    of_lists = [name for name in model if name.startswith(("recall@", "ndcg@"))]
    if "auc" in model or not ("mrr" in model or of_lists):
        return ("auc", "average_precision")
    return ("mrr",) if "mrr" in model else tuple(n for n in of_lists if n.count("_") == 0)[:2]


def summarise(data: ReportData) -> list[Tile]:
    """The tiles at the top: quality first, then size."""
    metrics = next(iter(data.metrics.values()), [])
    model = metrics[0] if metrics else {}
    headline = _headline(model)
    scored = None if data.score_histogram is None else data.score_histogram[0].sum()
    return [
        *(
            Tile(
                "Test AUC" if name == "auc" else format_metric_name(name),
                format_metric(model.get(name)),
                compare(metrics, name),
            )
            for name in headline
        ),
        count_tile("Nodes", find_count(data.stages, "nodes")),
        count_tile("Edges", find_count(data.stages, "edges")),
        count_tile("Pairs scored", scored),
    ]


def compare(metrics: list[Metrics], metric: str) -> str:
    """The model against the best heuristic: ``+0.0412 against Adamic-Adar``."""
    model = as_number(metrics[0].get(metric)) if metrics else None
    rival = best_rival(metrics, metric)
    if model is None or rival is None:
        return ""
    gain = model - rival.value
    return f"{'+' if gain >= 0 else '−'}{abs(gain):.4f} against {name_method(rival.method)}"


def count_tile(label: str, count: float | None) -> Tile:
    """A count, shortened when it is long and then written out in the small print."""
    if count is None or not math.isfinite(count):
        return Tile(label, DASH)
    if count < COMPACT_FROM:
        return Tile(label, f"{count:,.0f}")
    return Tile(label, format_compact(count), f"{count:,.0f}")


def find_count(stages: list[StageRow], noun: str) -> float | None:
    """The first count called ``nodes`` or ``num_nodes``: stages are in order, so the graph's."""
    for stage in stages:
        for key in (noun, f"num_{noun}"):
            value = as_number(stage.counts.get(key))
            if value is not None:
                return value
    return None


def metrics_table(protocol: str, metrics: list[Metrics]) -> MetricsTable:
    """The metrics of one protocol, ready to be shown."""
    columns = metric_columns(metrics)
    return MetricsTable(
        key=f"metrics-{protocol}",
        title=name_protocol(protocol),
        columns=[format_metric_name(column) for column in columns],
        methods=tabulate_metrics(metrics, columns),
    )


def name_protocol(protocol: str) -> str:
    """``random, cold pairs`` to ``Links against drawn non-links, cold pairs``."""
    name, comma, pairs = protocol.partition(", ")
    return f"{PROTOCOL_NAMES.get(name, name)}{comma}{pairs}"


def metric_columns(metrics: list[Metrics]) -> list[str]:
    """Columns of the table in order of appearance; ``_low`` and the like belong to a metric."""
    names = dict.fromkeys(name for row in metrics for name in row if name != "method")
    beside = {f"{name}{suffix}" for name in names for suffix in SUFFIXES}
    return [name for name in names if name not in beside]


def tabulate_metrics(metrics: list[Metrics], columns: list[str]) -> list[tuple[str, list[Cell]]]:
    """A name and a cell per column for every method."""
    names = [name_method(str(row.get("method", DASH))) for row in metrics]
    by_column = [column_cells(metrics, column) for column in columns]
    return [(name, [cells[row] for cells in by_column]) for row, name in enumerate(names)]


def column_cells(metrics: list[Metrics], column: str) -> list[Cell]:
    """A cell per method; the best is marked where there are several.

    Values that read the same are equally good: the digits not shown are noise.
    """
    known = [value for row in metrics if (value := as_number(row.get(column))) is not None]
    best = format_metric(max(known)) if len(known) > 1 else None
    return [metric_cell(row, column, best=best) for row in metrics]


def metric_cell(row: Metrics, column: str, *, best: str | None) -> Cell:
    """The value of a method, with its interval and spread where there are any."""
    text = format_metric(row.get(column))
    low, high, spread = (as_number(row.get(f"{column}{suffix}")) for suffix in SUFFIXES)
    return Cell(
        text=text,
        interval="" if low is None or high is None else f"{low:.4f}–{high:.4f}",
        spread="" if spread is None else f"± {spread:.4f}",
        best=as_number(row.get(column)) is not None and text == best,
    )


def group_plots(plots: list[Plot]) -> list[tuple[str, list[tuple[Plot, Markup]]]]:
    """Plots by section, each with the SVG the template may trust."""
    groups = []
    for section in SECTIONS:
        chosen = [plot for plot in plots if plot.key in section]
        heading = " and ".join(dict.fromkeys(section[plot.key] for plot in chosen))
        groups.append((heading, [(plot, Markup(plot.svg)) for plot in chosen]))
    return groups


def describe_stage(stage: StageRow, stages: list[StageRow]) -> dict[str, object]:
    """What the table shows of a stage; ``share`` is its percentage of the time of the run."""
    total = sum_seconds(stages)
    known = math.isfinite(stage.seconds) and total > 0
    return {
        "name": stage.name,
        "action": stage.action,
        "fingerprint": stage.fingerprint,
        "seconds": format_seconds(stage.seconds),
        "share": f"{100 * stage.seconds / total:.1f}" if known else "0",
        "counts": {format_words(name): format_count(n) for name, n in stage.counts.items()},
    }


def sum_seconds(stages: list[StageRow]) -> float:
    """Time of all stages, of those that know theirs."""
    return math.fsum(stage.seconds for stage in stages if math.isfinite(stage.seconds))
