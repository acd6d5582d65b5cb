"""``peg verify``: whether everything in a store is still what was written."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

import click
from rich.console import Console
from rich.table import Column, Table

from pipeline.cli.store_target import store_of, target_argument


@click.command()
@target_argument
@click.option("--sizes", is_flag=True, help="Look at the sizes of files alone, not into them.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
def verify(target: str, sizes: bool, as_json: bool) -> None:
    """Compare every artifact of STORE with what was written.

    STORE is a folder, a URL, or the pipeline file that names it. Nothing is changed. The exit
    code is 1 where something is damaged; `peg run` sets that aside and makes it again.

    \b
    peg verify runs/quickstart
    """
    from pipeline.store.verification import verify_store

    found = verify_store(store_of(target), contents=not sizes)
    damaged = [item for item in found if item.state == "damaged"]
    if as_json:
        click.echo(json.dumps([asdict(item) for item in found], indent=2))
        sys.exit(1 if damaged else 0)
    table = Table("stage", "fingerprint", Column("files", justify="right"),
                  Column("bytes", justify="right"), "state", box=None)  # fmt: skip
    for item in found:
        table.add_row(
            item.stage, item.fingerprint, f"{item.files:,}", f"{item.bytes:,}", item.state
        )
    console = Console(highlight=False)
    console.print(table)
    for item in damaged:
        console.print(f"{item.stage}/{item.fingerprint}: {item.damage}", soft_wrap=True)
    console.print(f"{len(found):,} artifacts, {len(damaged):,} damaged")
    sys.exit(1 if damaged else 0)
