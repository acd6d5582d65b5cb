"""``peg gc``: remove artifacts that nothing needs."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from peg_core.errors import ConfigError
from pipeline.cli.store_target import store_of
from pipeline.config.loading import load_config
from pipeline.schedule.schedule_store import ScheduleStore
from pipeline.store.local_store import open_store

if TYPE_CHECKING:
    from pipeline.store.garbage import Name, StoredArtifact


@click.command()
@click.argument("configs", metavar="CONFIG...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--store", "target", metavar="STORE", help="Store to clean, if no CONFIG names it.")
@click.option("--keep", default=2, show_default=True, type=click.IntRange(min=0),
              help="Newest artifacts of each stage that stay in any case.")  # fmt: skip
@click.option("--delete", is_flag=True, help="Remove them; otherwise they are only listed.")
def gc(configs: tuple[Path, ...], target: str | None, keep: int, delete: bool) -> None:
    """Remove artifacts that no CONFIG and no schedule of the store reaches.

    Without --delete nothing is removed. What the CONFIGs, as they are now, and the schedules of
    the store would use stays, and so do the newest of each stage and what the last run used.
    Runs with other settings (--set) are not known: give their files, or raise --keep. Nothing is
    removed while a run has the store.

    \b
    peg gc configs/quickstart.yaml
    peg gc configs/quickstart.yaml --keep 1 --delete
    """
    from pipeline.store.garbage import delete_artifacts, list_artifacts

    store = _one_store(configs, target)
    with open_store(store).lease() if delete else nullcontext():
        artifacts = list_artifacts(store, _reached(store, configs), keep=keep)
        garbage = [artifact for artifact in artifacts if artifact.needed_by is None]
        if delete:
            delete_artifacts(store, garbage)
    console = Console(highlight=False)
    console.print(_table(artifacts))
    size = sum(artifact.bytes for artifact in garbage) / 1e6
    done = "removed" if delete else "would be removed; add --delete to do it"
    console.print(f"{len(garbage)} of {len(artifacts)} artifacts, {size:,.1f} MB, {done}")


def _one_store(configs: tuple[Path, ...], target: str | None) -> str:
    named = {load_config(config).store for config in configs}
    stores = named | ({store_of(target)} if target else set())
    if len(stores) != 1:
        found = ", ".join(sorted(stores)) or "none"
        raise ConfigError(f"found the stores {found}, needed is one; give CONFIGs of one store")
    return stores.pop()


def _reached(store: str, configs: tuple[Path, ...]) -> dict[str, set[Name]]:
    """What is used, by whom; a file that cannot be read ends the cleaning."""
    from pipeline.store.garbage import reached_by_file, reached_by_schedule

    reached = {str(config): reached_by_file(config.absolute()) for config in configs}
    for schedule in ScheduleStore(store).schedules():
        reached[f"schedule {schedule.name}"] = reached_by_schedule(schedule)
    if not reached:
        raise ConfigError(
            f"{store} has no schedules, and no CONFIG was given: everything old would go; give the "
            "pipeline files that are in use"
        )
    return reached


def _table(artifacts: list[StoredArtifact]) -> Table:
    table = Table("stage", "fingerprint", "finished", "MB", "needed by", box=None)
    for artifact in artifacts:
        table.add_row(
            artifact.stage,
            artifact.fingerprint,
            artifact.finished or "not finished",
            f"{artifact.bytes / 1e6:,.1f}",
            artifact.needed_by or "[yellow]nothing[/yellow]",
        )
    return table
