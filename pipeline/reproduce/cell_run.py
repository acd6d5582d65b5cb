"""Runs the cells of an experiment one after the other; one that fails does not stop the others."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from peg_core.artifacts.manifest import Manifest
from peg_core.errors import PegError
from pipeline.report.data import SUFFIXES
from pipeline.reproduce.experiment import Experiment
from pipeline.reproduce.grid import Cell
from pipeline.reproduce.measures import MEASURES
from pipeline.reproduce.results import CurvePoint, ResultRow
from pipeline.run.progress import RunDisplay
from pipeline.run.runner import run_pipeline
from pipeline.run.stage_inputs import StageInputs
from pipeline.store.local_store import open_store
from workers.cluster import Cluster, ClusterLost
from workers.cluster_settings import ClusterSettings

# Stages that a user waits for when a trained model is put to the test.
TEST_STAGES = ("embed", "evaluate")
logger = logging.getLogger(__name__)


@dataclass
class SharedCluster:
    """One Ray for all cells that ask for the same, opened when the first of them needs it."""

    settings: ClusterSettings | None = None
    cluster: Cluster | None = None

    def of(self, settings: ClusterSettings) -> Cluster:
        """The cluster that is open, or another one where other settings are asked for."""
        if self.cluster is None or settings != self.settings:
            self.close()
            self.settings, self.cluster = settings, Cluster(settings)
        return self.cluster

    def close(self) -> None:
        cluster, self.cluster = self.cluster, None
        if cluster is not None:
            cluster.close()


@contextmanager
def shared_cluster() -> Iterator[SharedCluster]:
    """Closed at the end."""
    shared = SharedCluster()
    try:
        yield shared
    finally:
        shared.close()


@dataclass(frozen=True)
class Outcome:
    """What a cell came to.

    Args:
        rows: Of the table of results; of a failed cell one, with the error.
        curves: Points of figures.
        error: Why it failed; None: it did not.
    """

    rows: list[ResultRow]
    curves: list[CurvePoint] = field(default_factory=list)
    error: str | None = None


@dataclass(frozen=True)
class CellRunner:
    """What all cells of an experiment share.

    Args:
        experiment: Whose cells they are.
        display: Where progress is shown.
        cluster: Where tasks run.
        quick: Whether the grid was cut down.
        generated: Whether the graphs only stand in for the real ones.
        anyway: Start cells although they do not seem to fit.
    """

    experiment: Experiment
    display: RunDisplay
    cluster: SharedCluster
    quick: bool = False
    generated: bool = False
    anyway: bool = False

    def run(self, cell: Cell) -> Outcome:
        """Run a pipeline up to its evaluation, or go on with it, and read its results."""
        try:
            manifests = run_pipeline(
                cell.config,
                self.display,
                cluster=self.cluster.of(cell.config.cluster.settings()),
                target=target_of(cell),
                anyway=self.anyway,
            )
            return Outcome(self._rows(cell, manifests), self._curves(cell, manifests))
        except Exception as error:  # whatever it is, the other cells go on
            if isinstance(error, ClusterLost):
                with suppress(PegError):
                    self.cluster.close()
            if not isinstance(error, PegError | OSError):
                logger.exception("cell %s of %s failed", cell.name, cell.experiment)
            reason = (
                str(error) if isinstance(error, PegError) else f"{type(error).__name__}: {error}"
            )
            return Outcome([replace(self._row(cell), error=reason)], error=reason)

    def _row(self, cell: Cell) -> ResultRow:
        """What all rows of a cell have in common."""
        return ResultRow(
            experiment=cell.experiment,
            graph=cell.graph,
            method=cell.variant.name,
            features=cell.features,
            split=cell.split,
            quick=self.quick,
            generated=self.generated,
        )

    def _rows(self, cell: Cell, manifests: dict[str, Manifest]) -> list[ResultRow]:
        evaluated = manifests[target_of(cell)]
        common = _timed(self._row(cell), manifests)
        rows = []
        for protocol, (model, *heuristics) in evaluated.details["table"].items():
            for metric, value in _metrics(model).items():
                own = replace(common, protocol=protocol, metric=metric, value=value)
                rows.append(replace(own, paper=self._paper(cell, protocol, metric)))
            rows += [
                replace(
                    self._row(cell),
                    method=str(found["method"]),
                    features="",
                    heuristic=True,
                    protocol=protocol,
                    metric=metric,
                    value=value,
                )
                for found in heuristics
                for metric, value in _metrics(found).items()
            ]
        return rows + [
            replace(common, protocol=self.experiment.protocol, metric=metric, value=value)
            for metric, value in cold_shares_of(evaluated).items()
        ]

    def _paper(self, cell: Cell, protocol: str, metric: str) -> float | None:
        """The paper's figure, of what it measured on the graph that it used."""
        if self.generated or (protocol, metric) != (
            self.experiment.protocol,
            self.experiment.metric,
        ):
            return None
        variant = cell.variant
        if variant.value is not None:
            return None
        return self.experiment.paper_figure(variant.method, cell.features, cell.graph)

    def _curves(self, cell: Cell, manifests: dict[str, Manifest]) -> list[CurvePoint]:
        if not self.experiment.measures or cell.split:
            return []
        store = open_store(cell.config.store)
        inputs = StageInputs(
            {name: store.fetch(name, found.fingerprint) for name, found in manifests.items()}
        )
        return [
            CurvePoint(cell.experiment, measure, cell.graph, cell.variant.name, float(x), float(y))
            for measure in self.experiment.measures
            for x, y in MEASURES[measure](inputs)
        ]


def target_of(cell: Cell) -> str:
    """The stage whose table is the result: where a model is taken to another graph, that one's."""
    return "evaluate" if cell.config.evaluate.on is None else "other_evaluate"


def cold_shares_of(evaluated: Manifest) -> dict[str, float]:
    """Shares of the test links and of the non-links that have an isolated end."""
    population = evaluated.details.get("population")
    if not population:
        return {}
    return {
        f"cold_{kind}": population[f"cold_{kind}"] / max(population[kind], 1)
        for kind in ("links", "non_links")
    }


def _metrics(row: dict[str, object]) -> dict[str, float | None]:
    return {
        name: value if isinstance(value, int | float) else None
        for name, value in row.items()
        if name != "method" and not name.endswith(SUFFIXES)
    }


def _timed(row: ResultRow, manifests: dict[str, Manifest]) -> ResultRow:
    def total(*names: str) -> float:
        return sum(found.seconds for name, found in manifests.items() if name.endswith(names))

    return replace(
        row, seconds=total(""), train_seconds=total("train"), test_seconds=total(*TEST_STAGES)
    )
