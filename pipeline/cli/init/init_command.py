"""``peg init``: a commented pipeline file for tables that are there."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pipeline.cli.plan_command import cost_texts
from pipeline.report.formats import format_compact

if TYPE_CHECKING:
    from pipeline.draft.draft import Draft
    from pipeline.draft.first_run import FirstRun
    from pipeline.draft.guess import Guess


@click.command()
@click.argument("edges")
@click.option(
    "--nodes", multiple=True, metavar="LOCATION",
    help="Parquet node table. Once for each kind of node, where there are two.",
)  # fmt: skip
@click.option("--candidates", metavar="LOCATION", help="Parquet pairs to score.")
@click.option("--source", metavar="COLUMN", help="One end of an edge.  [default: guessed]")
@click.option("--target", metavar="COLUMN", help="The other end.  [default: guessed]")
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("pipeline.yaml"), show_default=True,
    metavar="FILE", help="The pipeline file to write.",
)  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace the file if it exists.")
def init(
    edges: str,
    nodes: tuple[str, ...],
    candidates: str | None,
    source: str | None,
    target: str | None,
    out: Path,
    overwrite: bool,
) -> None:
    """Look at Parquet files and write a pipeline file for them.

    Columns, kinds of node, direction, times, weights and features are guessed from names, types and
    a sample of the rows. Every guess is printed and written as a comment with its reason; to change
    one, edit a word of the file. Nothing is started.

    \b
    peg init edges.parquet
    peg init plays.parquet --nodes users.parquet --nodes items.parquet
    peg init "edges/*.parquet" --candidates pairs.parquet --out nightly.yaml
    """
    from pipeline.draft.draft import draft_pipeline
    from pipeline.draft.draft_text import draft_text
    from pipeline.draft.first_run import expect_first_run, require_free, write_pipeline

    require_free(out, overwrite=overwrite)
    draft = draft_pipeline(edges, nodes, candidates, ends=(source, target))
    first = expect_first_run(draft)
    sizes = _sizes(draft, first)
    write_pipeline(draft_text(draft, str(out), sizes), out, overwrite=overwrite)
    console = Console(highlight=False)
    console.print(_guesses(draft.guesses()))
    console.print()
    for line in sizes:
        console.print(line, markup=False, soft_wrap=True)
    quoted = shlex.quote(str(out))
    console.print(f"wrote {quoted}; next: peg run {quoted}", markup=False, soft_wrap=True)


def _guesses(guesses: Iterable[Guess]) -> Table:
    table = Table("key", "guess", "because", box=None)
    for guess in guesses:
        value = "none" if guess.value is None else guess.value
        shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        shown = shown.lower() if isinstance(value, bool) else shown
        table.add_row(*(Text(each, overflow="fold") for each in (guess.key, shown, guess.reason)))
    return table


def _sizes(draft: Draft, first: FirstRun) -> list[str]:
    """How large the graph is, and what a first run will take."""
    extent = first.extent
    nodes = format_compact(extent.nodes) if extent.nodes >= 10_000 else f"{extent.nodes:,}"
    time, memory, disk = cost_texts(first.total)
    lines = [f"about {nodes} nodes, {draft.edges.num_rows:,} rows of edges"]
    if draft.candidates is not None:
        lines[0] += f", {draft.candidates[0].num_rows:,} candidate pairs"
    lines.append(f"the first run: about {time}, {memory} of memory for a task, {disk} of disk")
    return lines
