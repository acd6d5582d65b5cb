"""The command `peg`."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import click
from rich.console import Console
from rich.table import Column, Table

from peg_core.errors import ConfigError, PegError
from pipeline.artifact import AnyStore, open_store
from pipeline.config import PipelineConfig
from pipeline.config_command import config as config_command
from pipeline.config_loading import load_config
from pipeline.doctor_command import doctor
from pipeline.gc_command import gc
from pipeline.generate import generate
from pipeline.history_command import history
from pipeline.inspect_command import inspect as inspect_command
from pipeline.jobs_command import jobs
from pipeline.manifest import Manifest
from pipeline.plan import Action, Step, forced_stages
from pipeline.progress import RunDisplay, show
from pipeline.recommend_command import recommend as recommend_command
from pipeline.report.data import SUFFIXES
from pipeline.schedule_command import schedule
from pipeline.score_command import score as score_command
from pipeline.submit_command import submit

INTERRUPTED = 130
# So that the table fits into a terminal.
SHORT = {"average_precision": "ap"}

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
cluster_option = click.option(
    "--cluster", "cluster_file", type=click.Path(path_type=Path), metavar="FILE",
    help="Take the `cluster:` section from FILE, such as configs/clusters/local.yaml.",
)  # fmt: skip


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="peg-pipeline", prog_name="peg")
def cli() -> None:
    """Link prediction on graphs too large for a notebook.

    Parquet edge lists in, Parquet scores out; every stage can be interrupted and goes on
    where it stopped.

    \b
    peg run configs/quickstart.yaml         from edges to scores and a report
    peg plan configs/quickstart.yaml        what would run, what is reused, and why
    peg recommend configs/quickstart.yaml   the best new links of every node
    peg score --help                        score more candidates, or another graph
    peg submit configs/quickstart.yaml ...  the same on a Ray cluster
    peg generate sbm --help                 make a graph to try things on
    """


@cli.command()
@config_argument
@set_option
@cluster_option
@from_option
@force_option
@click.option("--refresh", is_flag=True, help="Keep the trained model, encode and score again.")
@click.option("--events", is_flag=True, help="Print the run's log, JSON lines, instead of bars.")
def run(
    config: Path,
    overrides: tuple[str, ...],
    cluster_file: Path | None,
    start_from: str | None,
    force: tuple[str, ...],
    refresh: bool,
    events: bool,
) -> None:
    """Run the pipeline of the file CONFIG.

    Stages whose settings and inputs did not change are reused. A run that was interrupted goes
    on where it stopped: start it again.

    \b
    peg run configs/quickstart.yaml
    peg run configs/quickstart.yaml --set train.lr=0.002
    peg run configs/quickstart.yaml --from train
    peg run configs/quickstart.yaml --refresh     # new edges, the same model
    peg run configs/quickstart.yaml --cluster configs/clusters/on_premise.yaml
    """
    from pipeline.repeats import run_repeats, summarise
    from pipeline.runner import run_pipeline
    from pipeline.stages import STAGES

    loaded = load_config(config, overrides, cluster_file=cluster_file)
    forced = forced_stages(list(STAGES), start_from=start_from, force=force)
    console = Console(highlight=False)
    console.print(f"[bold]{loaded.name}[/bold]  store {loaded.store}")
    if refresh:
        if forced:
            raise ConfigError("--refresh decides itself what runs; leave --from and --force out")
        _refresh(console, config, loaded, events=events)
        return
    repeats = None
    with RunDisplay(Console(quiet=True) if events else console) as display:
        sink = sys.stdout if events else None
        if loaded.repeats > 1:
            manifests, repeats = run_repeats(loaded, display, forced=forced, events=sink)
        else:
            manifests = run_pipeline(loaded, display, forced=forced, events=sink)
    _print_results(console, config, open_store(loaded.store), manifests)
    if repeats is not None:
        console.print(f"\nmean ± deviation over {loaded.repeats} splits:")
        for row in summarise(repeats).iter_rows(named=True):
            console.print(
                f"  {row['protocol']:<22}{row['method']:<24}{row['metric']:<20}"
                f"{row['mean']:.4f} ± {row['deviation']:.4f}",
                soft_wrap=True,
            )


def _refresh(console: Console, file: Path, config: PipelineConfig, *, events: bool) -> None:
    """Score the grown graph with the model there is, and show what moved."""
    from pipeline.refresh import run_refresh
    from pipeline.refresh_display import drift_table

    with RunDisplay(Console(quiet=True) if events else console) as display:
        done = run_refresh(config, display, events=sys.stdout if events else None)
    store = open_store(config.store)
    console.print()
    if done.drift is None:
        console.print("no new edges since the training")
    else:
        console.print(drift_table(done.drift, config.refresh))
    if done.retrained:
        _print_results(console, file, store, done.manifests)
        return
    for name in ("score", "recommend", "drift"):
        if name in done.manifests:
            place = store.place(name, done.manifests[name].fingerprint)
            console.print(f"{name + ':':<12} {place}/", soft_wrap=True)


@cli.command()
@config_argument
@set_option
@from_option
@force_option
def plan(config: Path, overrides: tuple[str, ...], start_from: str | None, force: tuple[str, ...]
) -> None:  # fmt: skip
    """Show what `peg run` would do, and why; nothing is started."""
    from pipeline.runner import plan_run
    from pipeline.stages import STAGES

    loaded = load_config(config, overrides)
    forced = forced_stages(list(STAGES), start_from=start_from, force=force)
    table = Table("stage", "action", "fingerprint", "why", box=None)
    for step in plan_run(loaded, forced=forced):
        colour = "yellow" if step.action is Action.RUN else "green"
        table.add_row(
            step.stage.name,
            f"[{colour}]{step.action.value}[/{colour}]",
            step.fingerprint,
            step.reason,
        )
    Console(highlight=False).print(table)


@cli.command()
@config_argument
@set_option
def status(config: Path, overrides: tuple[str, ...]) -> None:
    """Show what exists of the pipeline of CONFIG, and who is working on it."""
    from pipeline.runner import plan_run

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
    folder = store.folder(step.stage.name, step.fingerprint)
    manifest = store.find(step.stage.name, step.fingerprint)
    if manifest is not None:
        counts = ", ".join(f"{key} {show(value)}" for key, value in manifest.counts.items())
        return "done", manifest.finished, f"{manifest.seconds:.1f}", counts
    if folder.exists():
        return "started", "", "", f"{len(list(folder.rglob('done/*.json')))} shards finished"
    return "missing", "", "", ""


def _print_results(
    console: Console, config: Path, store: AnyStore, manifests: dict[str, Manifest]
) -> None:
    """Where everything is, and what to try next."""
    from pipeline.stages.report import evaluation_tables

    for protocol, rows in evaluation_tables(manifests).items():
        console.print()
        console.print(_metrics_table(protocol, rows))
    console.print()
    at = {name: store.place(name, manifest.fingerprint) for name, manifest in manifests.items()}
    places: dict[str, Any] = {"report": f"{at['report']}/report.html"}
    if "score" in manifests:
        places["scores"] = f"{at['score']}/*.parquet"
    if "recommend" in manifests:
        places["recommendations"] = f"{at['recommend']}/*.parquet"
    places["test pairs"] = f"{at['evaluate']}/"
    for name, place in places.items():
        console.print(f"{name + ':':<12} {place}", soft_wrap=True)
    console.print("\nnext:")
    console.print(
        f"  peg run {config} --set train.lr=0.002  # only training and what follows", soft_wrap=True
    )
    console.print(f"  peg plan {config}  # what is reused, and why", soft_wrap=True)


def _metrics_table(protocol: str, rows: list[dict[str, Any]]) -> Table:
    """Values of every method, with half the width of their interval."""
    metrics = [name for name in rows[0] if name != "method" and not name.endswith(SUFFIXES)]
    table = Table(Column(protocol, no_wrap=True), *(SHORT.get(m, m) for m in metrics), box=None)
    for row in rows:
        table.add_row(row["method"].replace("_", " "), *(_metric(row, name) for name in metrics))
    return table


def _metric(row: dict[str, Any], name: str) -> str:
    low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
    return f"{row[name]:.4f}" + (f" ±{(high - low) / 2:.3f}" if low is not None else "")


cli.add_command(config_command)
cli.add_command(doctor)
cli.add_command(gc)
cli.add_command(generate)
cli.add_command(history)
cli.add_command(inspect_command)
cli.add_command(recommend_command)
cli.add_command(score_command)
cli.add_command(jobs)
cli.add_command(schedule)
cli.add_command(submit)


def main() -> None:
    """Run the command; errors a user can act on are shown without a traceback."""
    signal.signal(signal.SIGTERM, _terminate)
    errors = Console(stderr=True, highlight=False)
    try:
        cli.main(standalone_mode=False)
    except PegError as error:
        errors.print(f"[red]error:[/red] {_escape(error)}", soft_wrap=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        errors.print("stopped; finished work is kept: run the same command to go on")
        sys.exit(INTERRUPTED)
    except OSError as error:
        errors.print(f"[red]error:[/red] {_escape(error)}; check space and permissions")
        sys.exit(1)


def _escape(error: Exception) -> str:
    return str(error).replace("[", "\\[")


def _terminate(_number: int, _frame: FrameType | None) -> None:
    """A polite kill ends like Ctrl-C: tasks cancelled, lease given back."""
    raise KeyboardInterrupt
