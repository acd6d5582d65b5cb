"""Options that several commands on a pipeline file share."""

from __future__ import annotations

from pathlib import Path

import click

config_argument = click.argument("config", type=click.Path(path_type=Path))
set_option = click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE",
    help="Override a setting, for example --set train.epochs=5. May be repeated.",
)  # fmt: skip
from_option = click.option(
    "--from", "start_from", metavar="STAGE", help="Run STAGE and every stage after it again."
)
force_option = click.option(
    "--force", multiple=True, metavar="STAGE", help="Run STAGE again. May be repeated."
)
verify_option = click.option(
    "--verify", type=click.Choice(["full", "sizes"]),
    help="How finished artifacts are looked at before they are used.  [default: full]",
)  # fmt: skip
