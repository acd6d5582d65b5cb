"""``peg reproduce``: experiments as grids of pipelines, with one table and one page of results."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from peg_core.errors import ConfigError
from pipeline.cli.run_options import set_option

if TYPE_CHECKING:
    from pipeline.reproduce.experiment_file import ExperimentFile
    from pipeline.reproduce.grid import Choice
    from pipeline.reproduce.reproduction import Failure

ALL = "all"
OUT, QUICK_OUT = Path("runs/reproduce"), Path("runs/reproduce-quick")


@click.command()
@click.argument("name", required=False)
@click.option("--list", "listed", is_flag=True, help="Show the experiments, or the cells of NAME.")
@click.option("--show", metavar="CELL", help="Print the pipeline file of one cell of NAME.")
@click.option(
    "--data", type=click.Path(path_type=Path), metavar="DIR",
    help="Folder with a folder for every graph.  [default: the variable PEG_DATA_DIR]",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR",
    help="Folder of the results and of a store for every graph.  [default: runs/reproduce, with "
    "--quick runs/reproduce-quick]",
)  # fmt: skip
@click.option("--quick", is_flag=True, help="One split, few epochs, few graphs: does it all run?")
@click.option(
    "--only", multiple=True, metavar="PATTERN",
    help="Cells whose name GRAPH/METHOD/FEATURES/SPLIT begins like this. May be repeated.",
)  # fmt: skip
@click.option("--splits", type=click.IntRange(1), help="Number of splits, whatever the file says.")
@click.option("--anyway", is_flag=True, help="Start cells although they do not seem to fit.")
@set_option
def reproduce(
    name: str | None,
    listed: bool,
    show: str | None,
    data: Path | None,
    out: Path | None,
    quick: bool,
    only: tuple[str, ...],
    splits: int | None,
    anyway: bool,
    overrides: tuple[str, ...],
) -> None:
    """Run the experiment NAME, or all of them.

    NAME is one of configs/reproduce, a file, or `all`. Every cell of its grid is a pipeline that
    goes on where it was interrupted; one that fails is reported, the others go on, and the exit
    code is 1.

    \b
    peg reproduce --list
    peg reproduce all --quick                  # small random graphs, where no real ones are named
    peg reproduce task1 --data DIR --only cora
    peg reproduce task1 --list
    peg reproduce task1 --show cora/peg-best/N > cora.yaml
    """
    from pipeline.reproduce.grid import Choice

    choice = Choice(out or (QUICK_OUT if quick else OUT), quick, splits, only, overrides)
    console = Console(highlight=False)
    if show is not None:
        _show(name, show, choice, data)
    elif listed:
        _list(console, name, choice)
    elif name is None:
        raise ConfigError("an experiment is needed; `peg reproduce --list` shows them, or give all")
    else:
        sys.exit(1 if _run(console, name, choice, data, anyway=anyway) else 0)


def _run(
    console: Console, name: str, choice: Choice, data: Path | None, *, anyway: bool
) -> list[Failure]:
    """Run the cells, and say where the results are and what failed."""
    from pipeline.reproduce.graph_data import GraphData
    from pipeline.reproduce.page import PAGE
    from pipeline.reproduce.reproduction import reproduce
    from pipeline.reproduce.results import FILE
    from pipeline.run.progress import RunDisplay

    graphs = GraphData.choose(data, out=choice.out, quick=choice.quick)
    files = _files(name, graphs.variables)
    with RunDisplay(console) as display:
        failures = reproduce(files, choice, graphs, display, anyway=anyway)
    console.print(f"\ntable:       {choice.out / FILE}", soft_wrap=True)
    console.print(f"page:        {choice.out / PAGE}", soft_wrap=True)
    for failure in failures:
        text = f"failed:      {failure.experiment} {failure.cell}: {failure.reason}"
        console.print(text, markup=False, soft_wrap=True)
    return failures


def _files(name: str, variables: dict[str, str]) -> list[ExperimentFile]:
    from pipeline.reproduce.experiment_file import (
        find_experiment,
        find_experiments,
        load_experiment,
    )

    paths = find_experiments().values() if name == ALL else [find_experiment(name)]
    return [load_experiment(path, variables) for path in paths]


def _show(name: str | None, cell: str, choice: Choice, data: Path | None) -> None:
    """Print a pipeline file."""
    from pipeline.config.loading import dump_values
    from pipeline.reproduce.graph_data import GraphData
    from pipeline.reproduce.grid import pipeline_of

    if name is None or name == ALL:
        raise ConfigError("--show needs the experiment that the cell is of: peg reproduce NAME")
    graphs = GraphData.choose(data, out=choice.out, quick=choice.quick)
    (file,) = _files(name, graphs.variables)
    click.echo(dump_values(pipeline_of(file, choice, cell)), nl=False)


def _list(console: Console, name: str | None, choice: Choice) -> None:
    """Print experiments, or the cells of one without their splits."""
    from pipeline.reproduce.graph_data import GraphData
    from pipeline.reproduce.grid import cell_names, num_splits

    files = _files(name or ALL, GraphData(choice.out).variables)
    for file in files:
        rows = cell_names(file, choice)
        splits = num_splits(file.experiment, choice)
        console.print(
            f"{file.name:<16} {len(rows):>4} cells x {splits} split{'s' if splits > 1 else ''}  "
            f"{file.experiment.experiment}",
            soft_wrap=True,
        )
        if name not in (None, ALL):
            for row in rows:
                console.print(f"  {row}", markup=False, soft_wrap=True)
