"""``peg doctor``: is everything there that a run needs?"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import click
from rich.console import Console

from peg_core.errors import ConfigError
from pipeline.config.loading import load_config


@click.command()
@click.argument("config", required=False, type=click.Path(path_type=Path))
@click.option("--address", metavar="ADDRESS", envvar="PEG_ADDRESS",
              help="A job server, http://HOST:8265, to check too; or a Ray to join, HOST:6379 or "
              "auto, instead of `cluster.address`.")  # fmt: skip
@click.option("--cluster", "cluster_file", type=click.Path(path_type=Path), metavar="FILE",
              help="Take the `cluster:` section from FILE.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
def doctor(
    config: Path | None, address: str | None, cluster_file: Path | None, as_json: bool
) -> None:
    """Check Python, packages, Ray, token, disk, memory and limits, and say what to do.

    With CONFIG, check its store too. Where it names a cluster, every node is asked for its
    versions, its room, its cache, its clock, and whether it reaches the store. The exit code is
    1 when a check fails; probe files are removed at once, nothing else is changed.

    \b
    peg doctor
    peg doctor configs/quickstart.yaml --address http://head:8265
    peg doctor configs/quickstart.yaml --address auto
    """
    from pipeline.cli.doctor.display import print_checks, print_nodes
    from pipeline.cli.doctor.node_checks import node_rows
    from pipeline.cli.doctor_checks import run_checks

    if cluster_file is not None and config is None:
        raise ConfigError(
            "found --cluster without a pipeline file, whose section it replaces; give CONFIG too"
        )
    loaded = load_config(config, cluster_file=cluster_file) if config else None
    findings = run_checks(loaded, address)
    if as_json:
        rows = [*findings.checks, *node_rows(findings.answers)]
        click.echo(json.dumps([dataclasses.asdict(check) for check in rows], indent=2))
    else:
        console = Console(highlight=False)
        print_checks(console, findings.checks)
        print_nodes(console, findings.answers)
    if any(check.state == "fail" for check in findings.checks):
        sys.exit(1)
