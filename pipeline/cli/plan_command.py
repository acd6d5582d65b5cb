"""``peg plan`` and ``peg status``: what a run would do, and what there is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from peg_core.errors import InputError
from pipeline.cli.display.inspect_display import show_bytes
from pipeline.cli.run_options import config_argument, force_option, from_option, set_option
from pipeline.config.loading import load_config
from pipeline.report.formats import format_seconds, format_time
from pipeline.run.plan import Action, Step, forced_stages
from pipeline.run.progress import show
from pipeline.run.sizing.automatic import Choice
from pipeline.run.sizing.estimate import Estimate
from pipeline.store.local_store import AnyStore, open_store

# Columns of a terminal that take fingerprints, reasons and costs side by side.
LEAST_WIDTH = 100


@click.command()
@config_argument
@set_option
@from_option
@force_option
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON, for programs.")
def plan(
    config: Path,
    overrides: tuple[str, ...],
    start_from: str | None,
    force: tuple[str, ...],
    as_json: bool,
) -> None:
    """Show what `peg run` would do, why, and about what it would take; nothing is started.

    Seconds go by what earlier runs of this store took, else by a slow machine; memory is that of
    the largest task. What `auto` became is listed with its reason.

    The inputs of the stages that would run are looked at too: what files and schemas tell is told
    here, with exit code 1 where a run would be refused.
    """
    from pipeline.run.runner import plan_run
    from pipeline.run.sizing.expectation import estimate_run
    from pipeline.run.sizing.space_check import require_space
    from pipeline.stages import STAGES

    loaded = load_config(config, overrides)
    forced = forced_stages(list(STAGES), start_from=start_from, force=force)
    steps = plan_run(loaded, forced=forced)
    try:
        expected = estimate_run(loaded, open_store(loaded.store), steps)
    except InputError:
        if not as_json:
            console = Console(highlight=False)
            console.print(_plan_table(steps, {}, width=console.width))
        raise
    if as_json:
        click.echo(json.dumps(expected.as_dict(steps), indent=2))
    else:
        console = Console(highlight=False)
        console.print(_plan_table(steps, expected.by_stage, width=console.width))
        time, memory, disk = cost_texts(expected.total)
        console.print(f"\nin all about {time}, {memory} of memory for a task, {disk} of disk")
        if expected.choices:
            console.print(_choices_table(expected.choices))
    require_space(loaded, steps, expected.by_stage)


def _plan_table(steps: Sequence[Step], found: Mapping[str, Estimate], *, width: int) -> Table:
    """A line for each stage; where there is no room for all columns, without the fingerprints."""
    costs = bool(found) and any(step.action is Action.RUN for step in steps)
    names = ["stage", "action", "fingerprint", "why"]
    if costs and width < LEAST_WIDTH:
        names.remove("fingerprint")
    table = Table(*names, box=None)
    if costs:
        for name in ("time", "memory", "disk"):
            table.add_column(name, justify="right", no_wrap=True)
    for step in steps:
        colour = "yellow" if step.action is Action.RUN else "green"
        runs = step.action is Action.RUN and step.stage.name in found
        row = (
            step.stage.name,
            f"[{colour}]{step.action.value}[/{colour}]",
            *([step.fingerprint] if "fingerprint" in names else []),
            step.reason,
            *(cost_texts(found[step.stage.name]) if runs else ("", "", "")),
        )
        table.add_row(*row[: len(table.columns)])
    return table


def cost_texts(estimate: Estimate) -> tuple[str, str, str]:
    """Time, memory and disk, none longer than an estimate deserves."""
    sizes = (show_bytes(size) for size in (estimate.task_memory_bytes, estimate.disk_bytes))
    memory, disk = sizes
    seconds = f"{estimate.seconds:.0f} s" if estimate.seconds < 60 else None
    return seconds or format_seconds(estimate.seconds), memory, disk


def _choices_table(choices: Sequence[Choice]) -> Table:
    table = Table("automatic", "value", "because", box=None)
    for choice in choices:
        table.add_row(choice.key, str(choice.value), choice.reason)
    return table


@click.command()
@config_argument
@set_option
def status(config: Path, overrides: tuple[str, ...]) -> None:
    """Show what exists of the pipeline of CONFIG, and who is working on it."""
    from pipeline.run.runner import plan_run

    loaded = load_config(config, overrides)
    store = open_store(loaded.store)
    table = Table("stage", "state", "finished", "seconds", "counts", box=None)
    for step in plan_run(loaded):
        table.add_row(step.stage.name, *_state(store, step))
    console = Console(highlight=False)
    console.print(table)
    holder = store.holder()
    if holder is not None:
        console.print(f"running now: process {holder['pid']} on {holder['host']}")


def _state(store: AnyStore, step: Step) -> tuple[str, ...]:
    if step.damage is not None:
        return "damaged", "", "", f"{step.damage}; `peg run` makes it again"
    manifest = store.find(step.stage.name, step.fingerprint)
    if manifest is not None:
        counts = ", ".join(f"{key} {show(value)}" for key, value in manifest.counts.items())
        return "done", format_time(manifest.finished), f"{manifest.seconds:.1f}", counts
    shards = store.finished_shards(step.stage.name, step.fingerprint)
    if shards is not None:
        return "started", "", "", f"{shards} shards finished"
    return "missing", "", "", ""
