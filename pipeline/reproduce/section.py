"""One section of the page of results: an experiment's table, and what it says in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from pipeline.report.formats import DASH, format_metric_name, format_seconds, format_words
from pipeline.reproduce.experiment import Experiment
from pipeline.reproduce.grid import Variant, rows_of
from pipeline.reproduce.results import CELL, summarise_results

Row = dict[str, Any]


@dataclass(frozen=True)
class ResultCell:
    """A mean with its deviation, and in small print the paper's figure, the splits and the time."""

    value: str = DASH
    spread: str = ""
    small: tuple[str, ...] = ()
    best: bool = False


@dataclass(frozen=True)
class TableRow:
    """A method on all graphs."""

    name: str
    cells: list[ResultCell]
    baseline: bool = False


@dataclass(frozen=True)
class Section:
    """What the page shows of an experiment, figures aside."""

    name: str
    experiment: Experiment
    columns: list[str]
    rows: list[TableRow]
    sentences: list[str]
    failures: list[str] = field(default_factory=list)

    @property
    def metric(self) -> str:
        """In words, with its protocol where that is not the usual one."""
        name = format_metric_name(self.experiment.metric)
        protocol = self.experiment.protocol
        return name if protocol == "random" else f"{name} ({protocol})"


class SectionBuilder:
    """Makes a section from the rows of an experiment."""

    def __init__(self, name: str, experiment: Experiment, table: pl.DataFrame) -> None:
        self.name, self.experiment = name, experiment
        self.table = table.filter(pl.col("experiment") == name)
        self.means = summarise_results(self.table)
        shown = (pl.col("metric") == experiment.metric) & (
            pl.col("protocol") == experiment.protocol
        )
        self.shown: dict[tuple[str, ...], Row] = {
            tuple(row[key] for key in CELL): row
            for row in self.means.filter(shown).iter_rows(named=True)
        }
        found = set(self.table["graph"])
        self.graphs = [graph for graph in experiment.graphs if graph in found]
        self.quick = bool(self.table["quick"].any())
        self.generated = bool(self.table["generated"].any())

    def build(self) -> Section:
        return Section(
            name=self.name,
            experiment=self.experiment,
            columns=[self.experiment.graph_title(graph) for graph in self.graphs],
            rows=[*self._method_rows(), *self._heuristic_rows(), *self._paper_rows()],
            sentences=[*self._kind(), *self._winners(), *self._paper_winners(), *self._isolated()],
            failures=[
                f"{row['graph']}/{row['method']}/{row['features']}/{row['split']}: {row['error']}"
                for row in self.table.filter(pl.col("error").is_not_null()).iter_rows(named=True)
            ],
        )

    def _kind(self) -> Iterator[str]:
        if self.generated:
            yield "Small random graphs stand in for the real ones: this shows that it runs, no more"
        elif self.quick:
            yield "A quick run, of few epochs on few graphs: this shows that it runs, no more"

    def _variants(self) -> Iterator[tuple[Variant, str]]:
        """Rows that have a result."""
        for variant, features in rows_of(self.experiment):
            if any((graph, variant.name, features) in self.shown for graph in self.graphs):
                yield variant, features

    def title(self, variant: Variant, features: str) -> str:
        """Of a row: method, value and features."""
        title = self.experiment.method_title(variant.method)
        if variant.value is not None:
            title += f", {variant.value:g}"
        return title if len(self.experiment.features) == 1 else f"{title}, {features}"

    def _method_rows(self) -> Iterator[TableRow]:
        for variant, features in self._variants():
            cells = [self._cell(graph, variant.name, features) for graph in self.graphs]
            baseline = self.experiment.methods[variant.method].baseline
            yield TableRow(self.title(variant, features), cells, baseline)

    def _heuristic_rows(self) -> Iterator[TableRow]:
        names = dict.fromkeys(row["method"] for row in self.shown.values() if row["heuristic"])
        for name in names:
            cells = [self._cell(graph, name, "") for graph in self.graphs]
            yield TableRow(format_words(name), cells, baseline=True)

    def _paper_rows(self) -> Iterator[TableRow]:
        """What the paper has and nothing here is compared with; on its own graphs alone."""
        if self.generated:
            return
        compared = {
            self.experiment.paper_row(variant.method, features)
            for variant, features in self._variants()
        }
        for name, figures in self.experiment.paper.rows.items():
            if name not in compared and any(graph in figures for graph in self.graphs):
                cells = [
                    ResultCell(small=(f"paper {figures[graph]:.2f}",))
                    if graph in figures
                    else ResultCell()
                    for graph in self.graphs
                ]
                title = f"{name.replace('/', ', ')} (not run here)"
                yield TableRow(title, cells, name in self.experiment.paper.baselines)

    def _cell(self, graph: str, method: str, features: str) -> ResultCell:
        row = self.shown.get((graph, method, features))
        if row is None or row["mean"] is None:
            return ResultCell()
        deviation = row["deviation"]
        return ResultCell(
            value=_percent(row["mean"]),
            spread="" if deviation is None else f"± {_percent(deviation)}",
            small=tuple(_small_print(row)),
            best=_percent(row["mean"]) == _percent(self._best(graph)["mean"]),
        )

    def _best(self, graph: str, *, baselines: bool | None = None) -> Row:
        """The row with the largest mean on a graph; empty where there is none."""
        own = [
            row
            for (where, *_), row in self.shown.items()
            if where == graph
            and row["mean"] is not None
            and baselines in (None, self._is_baseline(row))
        ]
        return max(own, key=lambda row: row["mean"], default={})

    def _is_baseline(self, row: Row) -> bool:
        return bool(row["heuristic"]) or self._method_of(row).baseline

    def _method_of(self, row: Row) -> Any:
        names = {variant.name: variant for variant, _ in self._variants()}
        return self.experiment.methods[names[row["method"]].method]

    def _named(self, row: Row) -> str:
        """A row of the means in words."""
        if row["heuristic"]:
            return format_words(row["method"])
        found = next(item for item in self._variants() if item[0].name == row["method"])
        return self.title(found[0], row["features"])

    def _winners(self) -> Iterator[str]:
        """Where a baseline is ahead, or that none is."""
        compared, ahead = 0, []
        for graph in self.graphs:
            ours = self._best(graph, baselines=False)
            theirs = self._best(graph, baselines=True)
            if not ours or not theirs:
                continue
            compared += 1
            if theirs["mean"] > ours["mean"]:
                ahead.append(
                    f"{self.experiment.graph_title(graph)}: a baseline wins, {self._named(theirs)} "
                    f"with {_percent(theirs['mean'])} against {_percent(ours['mean'])} of "
                    f"{self._named(ours)}"
                )
        yield from ahead
        if compared and not ahead:
            yield "No baseline that was run here is ahead of the best method, on any graph"

    def _paper_winners(self) -> Iterator[str]:
        """Where a figure of the paper's baselines is above everything here."""
        if self.generated:
            return
        for graph in self.graphs:
            rows = self.experiment.paper.baselines.items()
            printed = {name: row[graph] for name, row in rows if graph in row}
            ours = self._best(graph, baselines=False)
            name = max(printed, key=lambda row: printed[row], default=None)
            if name is not None and ours and printed[name] > 100 * ours["mean"]:
                yield (
                    f"{self.experiment.graph_title(graph)}: the paper's {name.replace('/', ', ')} "
                    f"has {printed[name]:.2f}, above {_percent(ours['mean'])} of "
                    f"{self._named(ours)} here"
                )

    def _isolated(self) -> Iterator[str]:
        """How many test pairs have an isolated end, and how the best does without them."""
        for graph in self.graphs:
            ours = self._best(graph, baselines=False)
            if not ours:
                continue
            own = self.means.filter(
                *(pl.col(key) == ours[key] for key in CELL), ~pl.col("heuristic")
            )
            found = {(row["protocol"], row["metric"]): row["mean"] for row in own.to_dicts()}
            protocol, metric = self.experiment.protocol, self.experiment.metric
            links = found.get((protocol, "cold_links"))
            warm = found.get((f"{protocol}, warm pairs", metric))
            if links is None or warm is None:
                continue
            yield (
                f"{self.experiment.graph_title(graph)}: {links:.1%} of the test links and "
                f"{found[protocol, 'cold_non_links']:.1%} of the non-links have an isolated end; "
                f"without them {self._named(ours)} has {_percent(warm)} in place of "
                f"{_percent(ours['mean'])}"
            )


def _percent(share: float) -> str:
    return f"{100 * share:.2f}"


def _small_print(row: Row) -> Iterator[str]:
    if row["paper"] is not None:
        difference = 100 * (row["mean"] - row["paper"])
        sign = "+" if difference >= 0 else "−"
        yield f"paper {_percent(row['paper'])}, {sign}{abs(difference):.2f}"
    splits = f"{row['splits']} split{'s' if row['splits'] > 1 else ''}"
    if row["seconds"] is None:
        yield splits
    else:
        yield f"{splits}, {format_seconds(row['seconds'])}"
        yield (
            f"training {format_seconds(row['train_seconds'])}, "
            f"test {format_seconds(row['test_seconds'])}"
        )
