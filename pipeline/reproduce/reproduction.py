"""Runs experiments; keeps results after every cell, writes the page after every experiment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from peg_core.errors import ConfigError
from pipeline.reproduce.cell_run import CellRunner, Outcome, shared_cluster
from pipeline.reproduce.experiment_file import ExperimentFile, known_experiments
from pipeline.reproduce.graph_data import GraphData
from pipeline.reproduce.grid import Cell, Choice, build_cells
from pipeline.reproduce.page import write_page
from pipeline.reproduce.results import as_curves, as_table, keep_results
from pipeline.run.progress import RunDisplay


@dataclass(frozen=True)
class Failure:
    """A cell that failed, and why."""

    experiment: str
    cell: str
    reason: str


def reproduce(
    files: Sequence[ExperimentFile],
    choice: Choice,
    data: GraphData,
    display: RunDisplay,
    *,
    anyway: bool = False,
) -> list[Failure]:
    """Run all chosen cells of all experiments, one after the other.

    All files are checked before the first cell starts. The page also shows what the folder has of
    other experiments.

    Returns:
        The cells that failed.

    Raises:
        ConfigError: A file is wrong, or no cell was chosen.
    """
    grids = [(file, build_cells(file, choice)) for file in files]
    if not any(cells for _, cells in grids):
        raise ConfigError(
            f"no cell is called like {' or '.join(map(repr, choice.only))}; `peg reproduce NAME "
            "--list` shows them"
        )
    shown = known_experiments(data.variables) | {file.name: file for file in files}
    failures: list[Failure] = []
    with shared_cluster() as cluster:
        for file, cells in grids:
            data.prepare(cells)
            runner = CellRunner(
                file.experiment, display, cluster, choice.quick, data.generated, anyway
            )
            outcomes: list[Outcome] = []
            for number, cell in enumerate(cells, start=1):
                display.console.print(
                    f"[bold]{file.name}[/bold] {number} of {len(cells)}: {cell.name}"
                )
                outcomes.append(runner.run(cell))
                failures += _report(display, cell, outcomes[-1])
                keep_results(
                    choice.out,
                    as_table(row for outcome in outcomes for row in outcome.rows),
                    as_curves(point for outcome in outcomes for point in outcome.curves),
                )
            write_page(choice.out, list(shown.values()))
    return failures


def _report(display: RunDisplay, cell: Cell, outcome: Outcome) -> list[Failure]:
    if outcome.error is None:
        return []
    display.console.print(f"  failed: {outcome.error}", style="red", markup=False, soft_wrap=True)
    return [Failure(cell.experiment, cell.name, outcome.error)]
