"""``peg plan`` and ``peg status``: what a run would do, and what there is."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from pipeline.cli.run_options import config_argument, force_option, from_option, set_option
from pipeline.config.loading import load_config
from pipeline.run.plan import Action, Step, forced_stages
from pipeline.run.progress import show
from pipeline.store.local_store import AnyStore, open_store


@click.command()
@config_argument
@set_option
@from_option
@force_option
def plan(config: Path, overrides: tuple[str, ...], start_from: str | None, force: tuple[str, ...]
) -> None:  # fmt: skip
    """Show what `peg run` would do, and why; nothing is started.

    The inputs of the stages that would run are looked at too: what files and schemas tell is told
    here, with exit code 1 where a run would be refused.
    """
    from pipeline.run.input_check import check_inputs
    from pipeline.run.runner import plan_run
    from pipeline.run.space_check import require_space
    from pipeline.stages import STAGES

    loaded = load_config(config, overrides)
    forced = forced_stages(list(STAGES), start_from=start_from, force=force)
    table = Table("stage", "action", "fingerprint", "why", box=None)
    steps = plan_run(loaded, forced=forced)
    for step in steps:
        colour = "yellow" if step.action is Action.RUN else "green"
        table.add_row(
            step.stage.name,
            f"[{colour}]{step.action.value}[/{colour}]",
            step.fingerprint,
            step.reason,
        )
    Console(highlight=False).print(table)
    require_space(loaded.store, check_inputs(loaded, steps))


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
        return "done", manifest.finished, f"{manifest.seconds:.1f}", counts
    shards = store.finished_shards(step.stage.name, step.fingerprint)
    if shards is not None:
        return "started", "", "", f"{shards} shards finished"
    return "missing", "", "", ""
