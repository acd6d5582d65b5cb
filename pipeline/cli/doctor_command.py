"""``peg doctor``: is everything there that a run needs?"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pipeline.config.loading import load_config

COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command()
@click.argument("config", required=False, type=click.Path(path_type=Path))
@click.option("--address", metavar="URL", envvar="PEG_ADDRESS", help="Check this job server too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
def doctor(config: Path | None, address: str | None, as_json: bool) -> None:
    """Check Python, packages, Ray, token, disk, memory and limits, and say what to do.

    With CONFIG, check its store and its cluster too. The exit code is 1 when a check fails;
    nothing is started or changed.

    \b
    peg doctor
    peg doctor configs/quickstart.yaml --address http://head:8265
    """
    from pipeline.cli.doctor_checks import run_checks

    checks = run_checks(load_config(config) if config else None, address)
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(check) for check in checks], indent=2))
    else:
        table = Table("check", "state", "found", "what to do", box=None)
        for check in checks:
            colour = COLOURS[check.state]
            state = f"[{colour}]{check.state}[/{colour}]"
            table.add_row(check.name, state, escape(check.found), escape(check.advice))
        Console(highlight=False).print(table)
    if any(check.state == "fail" for check in checks):
        sys.exit(1)
