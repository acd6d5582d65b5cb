"""``peg jobs``: the jobs of a Ray cluster."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from pipeline.cli.display.run_replay import RunReplay
from pipeline.cli.lazy_group import SuggestingGroup
from pipeline.cli.submit_command import address_option, warn_if_open, watch
from pipeline.run.progress import RunDisplay

if TYPE_CHECKING:
    from workers.jobs.job import JobState
    from workers.jobs.job_client import JobClient

job_argument = click.argument("job", metavar="ID")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")


@click.group(cls=SuggestingGroup)
def jobs() -> None:
    """Look at, follow and stop the jobs of a Ray cluster.

    \b
    peg jobs list --address http://head:8265
    peg jobs logs quickstart-1a2b3c4d --follow --address http://head:8265
    peg jobs stop quickstart-1a2b3c4d --address http://head:8265
    """


@jobs.command("list")
@address_option
@json_option
def list_jobs(address: str, as_json: bool) -> None:
    """List the jobs that the cluster remembers, the newest first."""
    found = _connect(address).jobs()
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(job) for job in found], indent=2))
        return
    table = Table("job", "pipeline", "state", "started", "seconds", box=None)
    for job in found:
        table.add_row(job.submission_id, job.metadata.get("pipeline", ""), *_times(job))
    Console(highlight=False).print(table)


@jobs.command()
@job_argument
@address_option
@click.option("--follow", is_flag=True, help="Follow until the job ends; exit with its code.")
def logs(job: str, address: str, follow: bool) -> None:
    """Show what the job ID has done so far."""
    client = _connect(address)
    console = Console(highlight=False)
    if follow:
        client.state(job)
        sys.exit(watch(client, job, console))
    replay = RunReplay(RunDisplay(console))
    replay.feed(client.logs(job))
    replay.close()


@jobs.command()
@job_argument
@address_option
@json_option
def status(job: str, address: str, as_json: bool) -> None:
    """Show the state of the job ID."""
    found = _connect(address).state(job)
    if as_json:
        click.echo(json.dumps(dataclasses.asdict(found), indent=2))
        return
    state, started, seconds = _times(found)
    console = Console(highlight=False)
    console.print(f"{found.submission_id}  {state}  started {started}  {seconds} s", soft_wrap=True)
    if found.is_finished:
        console.print(f"exit code {found.exit_code}")
    console.print(found.message.partition(", last available logs")[0], markup=False, soft_wrap=True)


@jobs.command()
@job_argument
@address_option
def stop(job: str, address: str) -> None:
    """Stop the job ID; its finished work is kept, and a later run continues from there."""
    found = _connect(address).stop(job)
    Console(highlight=False).print(f"{found.submission_id}  {found.status.lower()}")


def _connect(address: str) -> JobClient:
    from workers.jobs.job_client import JobClient

    client = JobClient(address)
    warn_if_open(client)
    return client


def _times(job: JobState) -> tuple[str, str, str]:
    """State, beginning and duration as text."""
    if job.started is None:
        return job.status.lower(), "", ""
    begun = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(job.started))
    return job.status.lower(), begun, f"{(job.finished or time.time()) - job.started:.0f}"
