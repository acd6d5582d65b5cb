"""``peg run``: a pipeline from edges to scores and a report."""

from __future__ import annotations

import math
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from peg_core.artifacts.manifest import Manifest
from peg_core.errors import ConfigError
from peg_core.object_url import within
from pipeline.cli.display.metrics_display import print_metrics
from pipeline.cli.run_options import (
    config_argument,
    force_option,
    from_option,
    set_option,
    verify_option,
)
from pipeline.config.loading import load_config
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.plan import forced_stages
from pipeline.run.progress import RunDisplay
from pipeline.store.local_store import AnyStore, open_store

if TYPE_CHECKING:
    import polars as pl

    from pipeline.run.repeats import RunSeries


@click.command()
@config_argument
@set_option
@click.option(
    "--cluster", "cluster_file", type=click.Path(path_type=Path), metavar="FILE",
    help="Take the `cluster:` section from FILE, such as configs/clusters/local.yaml.",
)  # fmt: skip
@from_option
@force_option
@verify_option
@click.option("--refresh", is_flag=True, help="Keep the trained model, encode and score again.")
@click.option("--anyway", is_flag=True, help="Start although it does not seem to fit.")
@click.option("--events", is_flag=True, help="Print the run's log, JSON lines, instead of bars.")
def run(
    config: Path,
    overrides: tuple[str, ...],
    cluster_file: Path | None,
    start_from: str | None,
    force: tuple[str, ...],
    verify: str | None,
    refresh: bool,
    anyway: bool,
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
    from pipeline.run.repeats import RunSeries, run_series
    from pipeline.run.runner import run_pipeline
    from pipeline.stages import STAGES

    chosen = (*overrides, f"integrity.verify={verify}") if verify else overrides
    loaded = load_config(config, chosen, cluster_file=cluster_file)
    forced = forced_stages(list(STAGES), start_from=start_from, force=force)
    console = Console(highlight=False)
    console.print(f"[bold]{loaded.name}[/bold]  store {loaded.store}")
    if refresh:
        if forced:
            raise ConfigError("--refresh decides itself what runs; leave --from and --force out")
        _refresh(console, config, loaded, events=events, anyway=anyway)
        return
    series, together = RunSeries.of(loaded), None
    with RunDisplay(Console(quiet=True) if events else console) as display:
        sink = sys.stdout if events else None
        if series is not None:
            manifests, together = run_series(
                series, display, forced=forced, events=sink, anyway=anyway
            )
        else:
            manifests = run_pipeline(loaded, display, forced=forced, events=sink, anyway=anyway)
    _print_results(console, config, open_store(loaded.store), manifests)
    if series is not None and together is not None:
        _print_series(console, series, together)


def _print_series(console: Console, series: RunSeries, together: pl.DataFrame) -> None:
    """What several runs come to; of windows of time each one, too: they are no repetitions."""
    from pipeline.run.repeats import summarise

    console.print(f"\nmean ± deviation over {len(series.configs)} {series.noun}s:")
    for row in summarise(together).iter_rows(named=True):
        each = ""
        if series.noun == "window":
            each = f"  ({', '.join(f'{value:.4f}' for value in row['values'])})"
        deviation = math.nan if row["deviation"] is None else row["deviation"]
        console.print(
            f"  {row['protocol']:<22}{row['method']:<24}{row['metric']:<20}"
            f"{row['mean']:.4f} ± {deviation:.4f}{each}",
            soft_wrap=True,
        )


def _refresh(
    console: Console, file: Path, config: PipelineConfig, *, events: bool, anyway: bool
) -> None:
    """Score the grown graph with the model there is, and show what moved."""
    from pipeline.cli.display.refresh_display import drift_table
    from pipeline.run.refresh import run_refresh

    with RunDisplay(Console(quiet=True) if events else console) as display:
        done = run_refresh(config, display, events=sys.stdout if events else None, anyway=anyway)
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
            location = store.location(name, done.manifests[name].fingerprint)
            console.print(f"{name + ':':<12} {location}/", soft_wrap=True)


def _print_results(
    console: Console, config: Path, store: AnyStore, manifests: dict[str, Manifest]
) -> None:
    """Where everything is, and what to try next."""
    from pipeline.stages.report import cold_note, evaluation_tables

    for protocol, rows in evaluation_tables(manifests).items():
        print_metrics(console, protocol, rows)
    if note := cold_note(manifests["evaluate"]):
        console.print(f"\n{note}", soft_wrap=True)
    console.print()
    at = {name: store.location(name, manifest.fingerprint) for name, manifest in manifests.items()}
    outputs: dict[str, Any] = {"report": within(at["report"], "report.html")}
    if "score" in manifests:
        outputs["scores"] = within(at["score"], "*.parquet")
    if "recommend" in manifests:
        outputs["recommendations"] = within(at["recommend"], "*.parquet")
    outputs["test pairs"] = within(at["evaluate"], "")
    for name, location in outputs.items():
        console.print(f"{name + ':':<12} {location}", soft_wrap=True)
    file = shlex.quote(str(config))
    console.print("\nnext:")
    if "score" in manifests:
        console.print(f"  peg top {file}  # the best new links", soft_wrap=True)
    console.print(
        f"  peg run {file} --set train.lr=0.002  # only training and what follows", soft_wrap=True
    )
    console.print(f"  peg plan {file}  # what is reused, and why", soft_wrap=True)
