"""``peg submit``: run a pipeline on a Ray cluster, and watch it from here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.console import Console

from peg_core.errors import ConfigError
from pipeline.cli.display.run_replay import RunReplay
from pipeline.config.field_types import parse_bytes
from pipeline.run.progress import RunDisplay

if TYPE_CHECKING:
    from workers.jobs.job_client import JobClient

ADDRESS_HELP = "Job server: the cluster's dashboard, http://HOST:8265. Also from PEG_ADDRESS."
address_option = click.option(
    "--address", metavar="URL", required=True, envvar="PEG_ADDRESS", help=ADDRESS_HELP
)
INTERRUPTED = 130


JOB_OPTIONS = (
    click.option("--cluster", "cluster_file", type=click.Path(path_type=Path), metavar="FILE",
                 help="Take the `cluster:` section from FILE."),
    click.option("--working-dir", type=click.Path(path_type=Path, file_okay=False, exists=True),
                 help="Folder copied to the cluster; by default the folder of CONFIG. "
                 "Data, runs and environments in it are not copied."),
    click.option("--shared-paths", is_flag=True,
                 help="Local paths of CONFIG are on a file system that every node sees."),
    click.option("--with-package", is_flag=True,
                 help="Copy this installation's packages too, for nodes without them."),
    click.option("--env", "environment", multiple=True, metavar="NAME=VALUE",
                 help="Variable for the job. The cluster stores it readably: no secrets."),
    click.option("--pip", multiple=True, metavar="REQUIREMENT",
                 help="Package that the nodes install for the job. May be repeated."),
    click.option("--image", metavar="IMAGE",
                 help="Container image that the job runs in, with the package; no folder is "
                 "copied. The nodes need podman."),
    click.option("--runtime-env", "runtime_env_file", type=click.Path(path_type=Path),
                 metavar="FILE", help="YAML or JSON with more keys of Ray's runtime environment."),
    click.option("--driver-cpus", type=float, default=0.0, show_default=True,
                 help="CPUs set aside for the driver, which mostly waits."),
    click.option("--driver-memory", metavar="SIZE",
                 help="Memory set aside for the driver, such as 4GB."),
)  # fmt: skip
JOB_KEYS = (
    "cluster_file", "working_dir", "shared_paths", "with_package", "environment", "pip", "image",
    "runtime_env_file", "driver_cpus", "driver_memory",
)  # fmt: skip
Command = TypeVar("Command", bound=Callable[..., Any])


def job_options(command: Command) -> Command:
    """Options of whatever becomes a job on a cluster; see :func:`job_settings`."""
    for option in reversed(JOB_OPTIONS):
        command = option(command)
    return command


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@address_option
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE",
              help="Override a setting. May be repeated.")  # fmt: skip
@click.option("--id", "label", metavar="TEXT",
              help="Part of the job's id; with another one the same file runs again.")  # fmt: skip
@click.option("--refresh", is_flag=True, help="Keep the trained model, like `peg run --refresh`.")
@job_options
@click.option("--no-wait", is_flag=True, help="Return as soon as the cluster has the job.")
def submit(
    config: Path,
    address: str,
    overrides: tuple[str, ...],
    label: str | None,
    refresh: bool,
    no_wait: bool,
    **options: Any,
) -> None:
    """Run the pipeline of the file CONFIG as a job on a Ray cluster.

    The folder is copied, the data is not: `store`, `graph.edges` and the like must be URLs, or
    paths that every node sees. Relative paths, and those that are not found here, are refused
    without --shared-paths. The exit code is that of the job, 130 when it was stopped. Ctrl-C
    ends the watching, not the job.

    The token is read from RAY_AUTH_TOKEN, or from a file of mode 0600 that
    RAY_AUTH_TOKEN_PATH names.

    \b
    peg submit links.yaml --address http://head:8265 --working-dir .
    peg submit links.yaml --address http://head:8265 --id second --no-wait
    peg submit configs/quickstart.yaml --address http://head:8265 --shared-paths
    """
    from pipeline.run.input_check import check_from_here
    from pipeline.run.job_submission import Submission
    from workers.jobs.job_client import JobClient

    submission = Submission(
        config=config,
        overrides=overrides,
        label=label,
        mode="refresh" if refresh else "run",
        **job_settings(**options),
    )
    loaded = submission.load()
    for text in check_from_here(loaded):
        errors = Console(stderr=True, highlight=False)
        errors.print(f"[yellow]not checked:[/yellow] {text}", soft_wrap=True)
    request = submission.job(loaded)
    client = JobClient(address)
    warn_if_open(client)
    client.submit(request)
    console = Console(highlight=False)
    console.print(f"[bold]{request.submission_id}[/bold]  on {client.address}", soft_wrap=True)
    if no_wait:
        hint = f"follow it: peg jobs logs {request.submission_id} --follow"
        console.print(f"{hint} --address {client.address}", soft_wrap=True)
        return
    sys.exit(watch(client, request.submission_id, console))


def job_settings(*, environment: Sequence[str], driver_memory: str | None, **options: Any
) -> dict[str, Any]:  # fmt: skip
    """What :func:`job_options` took, as a ``Submission`` takes it."""
    return {
        **options,
        "environment": dict(_variable(item) for item in environment),
        "driver_memory_bytes": _bytes(driver_memory),
    }


def watch(client: JobClient, submission_id: str, console: Console) -> int:
    """Show what the job does until it ends; returns its exit code."""
    with RunDisplay(console) as display:
        replay = RunReplay(display)
        try:
            for text in client.follow(submission_id):
                replay.feed(text)
        except KeyboardInterrupt:
            replay.close()
            console.print(
                f"the job continues; stop it: peg jobs stop {submission_id} --address "
                f"{client.address}",
                soft_wrap=True,
            )
            return INTERRUPTED
        replay.close()
    job = client.wait(submission_id)
    colour = "green" if job.exit_code == 0 else "red"
    console.print(f"[{colour}]{job.status.lower()}[/{colour}]  {submission_id}", soft_wrap=True)
    return job.exit_code


def warn_if_open(client: JobClient) -> None:
    """Warn about a cluster without authentication."""
    if client.is_open:
        Console(stderr=True, highlight=False).print(
            f"[yellow]warning:[/yellow] {client.address} asks for no token: anyone who reaches "
            "this port can run any code on the cluster and read its data. Start Ray with "
            "RAY_AUTH_MODE=token, and let no one else reach its ports.",
            soft_wrap=True,
        )


def _variable(item: str) -> tuple[str, str]:
    name, equals, value = item.partition("=")
    if not equals or not name:
        raise ConfigError(f"--env {item}: a variable must be NAME=VALUE")
    return name, value


def _bytes(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return parse_bytes(text)
    except ValueError as error:
        raise ConfigError(f"--driver-memory: {error}") from None
