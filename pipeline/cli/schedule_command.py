"""``peg schedule``: run pipelines at set times."""

from __future__ import annotations

import json
import logging
import shlex
import sys
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from peg_core.errors import ConfigError, PegError
from pipeline.cli.lazy_group import SuggestingGroup
from pipeline.cli.store_target import store_of, target_argument
from pipeline.cli.submit_command import JOB_KEYS, job_options, job_settings
from pipeline.config.loading import load_config
from pipeline.schedule.export.exports import KINDS, export_schedule
from pipeline.schedule.field_checks import faults, parse_interval
from pipeline.schedule.launcher import submission_of
from pipeline.schedule.schedule import Schedule
from pipeline.schedule.schedule_store import ScheduleStore
from pipeline.schedule.tick import Tick, TickState, text_of

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")
name_argument = click.argument("name")


@click.group(cls=SuggestingGroup)
def schedule() -> None:
    """Run pipelines at set times.

    Schedules are kept in the store of the pipeline. `peg schedule serve` is the daemon that
    starts what is due. If you already run a scheduler, export files for it instead.

    \b
    peg schedule add configs/quickstart.yaml --cron '30 2 * * *' --timezone Europe/Berlin
    peg schedule serve runs/quickstart --health-port 8900
    peg schedule history runs/quickstart
    peg schedule export runs/quickstart nightly --kind systemd --out units/
    """


@schedule.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--name", help="Name of the schedule; by default that of the pipeline.")
@click.option("--cron", metavar="EXPRESSION", help="Five fields, or six with seconds first.")
@click.option("--every", metavar="INTERVAL", help="Instead of --cron, such as 90s, 15m, 6h, 1d.")
@click.option("--timezone", default="UTC", show_default=True, help="Time zone of --cron.")
@click.option("--refresh", is_flag=True, help="Keep the trained model, like `peg run --refresh`.")
@click.option("--address", metavar="URL", help="Submit to this job server; else run here.")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE",
              help="Override a setting. May be repeated.")  # fmt: skip
@click.option("--overlap", type=click.Choice(["skip", "queue", "replace"]), default="skip",
              show_default=True, help="What to do while the last run is still going.")  # fmt: skip
@click.option("--catch-up", type=click.Choice(["none", "last", "all"]), default="last",
              show_default=True, help="Which missed ticks run once a daemon is back.")  # fmt: skip
@click.option("--retries", default=0, show_default=True, help="Further attempts after a failure.")
@click.option("--retry-delay", default="60s", show_default=True, metavar="INTERVAL",
              help="Wait before the first retry; doubles each time.")  # fmt: skip
@click.option("--replace", is_flag=True, help="Replace the schedule of this name.")
@job_options
def add(config: Path, name: str | None, every: str | None, refresh: bool, retry_delay: str,
        replace: bool, **settings: Any) -> None:  # fmt: skip
    """Add a schedule for the pipeline of the file CONFIG.

    With --address every tick is a job, as `peg submit` makes them: the options of the job are
    kept with the schedule. FILEs are read again at every tick.
    """
    job = job_settings(**{key: settings.pop(key) for key in JOB_KEYS})
    loaded = load_config(config, settings["overrides"], cluster_file=job["cluster_file"])
    if settings["address"]:
        from workers.jobs.job_client import check_address

        settings["address"] = check_address(settings["address"])
    else:
        _require_address_for(job)
    try:
        new = Schedule(
            name=name or loaded.name,
            config=str(config.absolute()),
            folder=str(Path.cwd()),
            every_seconds=parse_interval(every) if every else None,
            retry_delay_seconds=parse_interval(retry_delay),
            mode="refresh" if refresh else "run",
            created=datetime.now(UTC),
            **{key: str(value.absolute()) if isinstance(value, Path) else value
               for key, value in job.items()},
            **settings,
        )  # fmt: skip
    except ValidationError as error:
        raise ConfigError("\n".join(faults(error))) from None
    except ValueError as error:
        raise ConfigError(str(error)) from None
    if new.address:  # what a tick would be refused for
        submission = submission_of(new)
        submission.job(submission.load())
    upcoming = new.next_tick(datetime.now(UTC))
    store = ScheduleStore(loaded.store)
    store.add(new, replace=replace)
    console = Console(highlight=False)
    console.print(f"[bold]{new.name}[/bold]  {new.when}, next {_text(upcoming)}", soft_wrap=True)
    if store.daemon() is None:
        hint = f"no daemon serves it yet: peg schedule serve {shlex.quote(loaded.store)}"
        console.print(hint, soft_wrap=True, markup=False)


@schedule.command("list")
@target_argument
@json_option
def list_schedules(target: str, as_json: bool) -> None:
    """List the schedules of STORE: a folder, a URL, or the pipeline file that names it."""
    store = ScheduleStore(store_of(target))
    found, broken = store.readable_schedules()
    _warn(broken.values())
    if as_json:
        click.echo(json.dumps([item.model_dump(mode="json") for item in found], indent=2))
        return
    table = Table("schedule", "when", "next", "mode", "where", "overlap", "catch-up", box=None)
    for item in found:
        upcoming = _text(item.next_tick(datetime.now(UTC)))
        where = escape(item.address or "here")
        table.add_row(item.name, item.when, upcoming, item.mode, where, item.overlap, item.catch_up)
    console = Console(highlight=False)
    console.print(table)
    daemon = store.daemon()
    served = f"process {daemon['pid']} on {daemon['host']}" if daemon else "no daemon"
    console.print(f"served by {served}")


@schedule.command()
@target_argument
@name_argument
def remove(target: str, name: str) -> None:
    """Remove the schedule NAME, also one that cannot be read; its history stays."""
    ScheduleStore(store_of(target)).remove(name)


@schedule.command("run-now")
@target_argument
@name_argument
def run_now(target: str, name: str) -> None:
    """Run the schedule NAME now, in addition to its regular times.

    The daemon that serves STORE is asked to do it. Without one it runs from here, and the exit
    code is that of the run.
    """
    store = ScheduleStore(store_of(target))
    tick = Tick.of(store.get(name), datetime.now(UTC), store.store, kind="manual")
    console = Console(highlight=False)
    daemon = store.daemon()
    if daemon is not None:
        store.request(tick)
        console.print(f"asked process {daemon['pid']} on {daemon['host']} for {tick.submission_id}")
        return
    ended = _run_here(store, tick)
    told = f"{ended.submission_id}  {ended.state.value}  {ended.reason}"
    console.print(told, soft_wrap=True, markup=False)
    sys.exit(0 if ended.state is TickState.SUCCEEDED else ended.exit_code or 1)


@schedule.command()
@target_argument
@click.argument("name", required=False)
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True,
              help="Ticks to show, the newest first.")  # fmt: skip
@json_option
def history(target: str, name: str | None, limit: int, as_json: bool) -> None:
    """Show how the ticks of STORE, or of its schedule NAME, turned out."""
    found, broken = ScheduleStore(store_of(target)).readable_ticks(name)
    _warn(broken)
    ticks = found[::-1][:limit]
    if as_json:
        click.echo(json.dumps([tick.as_dict() for tick in ticks], indent=2))
        return
    table = Table("schedule", "due", "state", "attempt", "begun", "ended", "why", box=None)
    for tick in ticks:
        table.add_row(tick.schedule, text_of(tick.due_time), tick.state.value, str(tick.attempt),
                      tick.begun or "", tick.ended or "", escape(tick.reason))  # fmt: skip
    Console(highlight=False).print(table)


@schedule.command()
@click.argument("targets", metavar="STORE...", nargs=-1, required=True)
@click.option("--health-port", type=int, help="GET /health on 127.0.0.1; 0 takes any free port.")
def serve(targets: tuple[str, ...], health_port: int | None) -> None:
    """Start what is due in the STOREs, in the foreground, until interrupted.

    One daemon serves a store. It may be stopped and started at any time: runs under way continue,
    and no tick runs twice. It reads the token for clusters from its environment.
    """
    from pipeline.schedule.service import ScheduleService

    logging.basicConfig(format="%(asctime)s  %(message)s", level=logging.INFO, stream=sys.stdout)
    stores = [store_of(target) for target in targets]

    def tell(port: int | None) -> None:
        health = f", health on http://127.0.0.1:{port}/health" if port else ""
        click.echo(f"serving {', '.join(stores)}{health}")

    ScheduleService(stores).serve(health_port, tell)


@schedule.command()
@target_argument
@name_argument
@click.option(
    "--kind", type=click.Choice(KINDS), required=True, help="Scheduler to write files for."
)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=Path(),
              help="Folder to write to; the current one by default.")  # fmt: skip
@click.option("--image", default="peg-pipeline:latest", show_default=True,
              help="kubernetes, kuberay: image with Ray and the package.")  # fmt: skip
@click.option("--namespace", default="default", show_default=True, help="kubernetes, kuberay.")
def export(target: str, name: str, kind: str, out: Path, image: str, namespace: str) -> None:
    """Write the schedule NAME as files for another scheduler; each begins with how to use it."""
    found = ScheduleStore(store_of(target)).get(name)
    for file in export_schedule(found, kind, out, image=image, namespace=namespace):
        click.echo(file)


def _require_address_for(job: dict[str, Any]) -> None:
    """Options of a job that nobody would submit are a mistake; runs here take cluster files too."""
    idle = [key for key, value in job.items() if value and key != "cluster_file"]
    if idle:
        names = ", ".join(f"`{key}`" for key in idle)
        raise ConfigError(
            f"found {names} of a job without --address; give the job server that takes it, or "
            "leave these options out"
        )


def _run_here(store: ScheduleStore, tick: Tick) -> Tick:
    """Act as the daemon until the tick is done; other schedules are left alone."""
    from pipeline.schedule.daemon import ScheduleDaemon

    with store.lease():
        daemon = ScheduleDaemon(store, notices_due=False)
        tick = daemon.ask(tick)
        while True:
            daemon.step(datetime.now(UTC))
            found = next((t for t in store.ticks(tick.schedule) if t.due == tick.due), None)
            if found is None:
                raise PegError(
                    f"the record of {tick.submission_id} was removed or overwritten while it ran; "
                    "see `peg history` for how the run went"
                )
            if found.ended is not None and found.state is not TickState.WAITING:
                return found
            time.sleep(0.5)


def _warn(broken: Iterable[PegError]) -> None:
    """Name what cannot be read, apart from the output: scripts read that."""
    console = Console(stderr=True, highlight=False)
    for error in broken:
        console.print(f"[yellow]warning:[/yellow] {escape(str(error))}", soft_wrap=True)


def _text(when: datetime | None) -> str:
    return "never" if when is None else text_of(when)
