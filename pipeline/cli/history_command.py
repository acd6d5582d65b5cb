"""``peg history``: what ran in a store, and what it cost."""

from __future__ import annotations

import click
import polars as pl
from rich.console import Console
from rich.table import Column, Table

from pipeline.cli.store_target import store_of, target_argument
from pipeline.run.history import read_history
from pipeline.run.progress import show
from pipeline.run.stage_metrics import METRIC_NAMES


@click.command()
@target_argument
@click.option("--run", "run", metavar="ID", help="Show the stages of this run.")
@click.option("--limit", default=20, show_default=True, help="Runs to show, the newest first.")
@click.option("--json", "as_json", is_flag=True, help="Print all rows as JSON.")
def history(target: str, run: str | None, limit: int, as_json: bool) -> None:
    """Show the runs of STORE: a folder, a URL, or the pipeline file that names it.

    \b
    peg history runs/quickstart
    peg history runs/quickstart --run 20260102T030405Z-1a2b3c
    From Python, with a row for every stage of every run:
      polars.read_parquet("runs/quickstart/history/*.parquet")
    """
    table = read_history(store_of(target))
    if run is not None:
        table = table.filter(pl.col("run") == run)
    if as_json:
        click.echo(table.write_json())
        return
    Console(highlight=False).print(_runs(table, limit) if run is None else _stages(table))


def _runs(table: pl.DataFrame, limit: int) -> Table:
    names = ("started", "outcome", "seconds", "ran", "reused", "error")
    longest = max(table["run"].str.len_chars().to_list(), default=0)
    # never cut or folded: it is copied into `--run`
    shown = Table(Column("run", min_width=longest, no_wrap=True), *names, box=None)
    for group in table.partition_by("run", maintain_order=True)[:limit]:
        first = group.row(0, named=True)
        actions = group["action"].to_list()
        shown.add_row(
            first["run"],
            f"{first['started']:%Y-%m-%d %H:%M:%S}",
            first["outcome"],
            f"{first['seconds']:.1f}",
            str(actions.count("run")),
            str(actions.count("reuse")),
            (first["error"] or "").partition("\n")[0],
        )
    return shown


def _stages(table: pl.DataFrame) -> Table:
    names = ("stage", "action", "stage_seconds", *METRIC_NAMES)
    shown = Table(*names, box=None)
    for row in table.iter_rows(named=True):
        shown.add_row(*("" if row[name] is None else show(row[name]) for name in names))
    return shown
