"""Random kills: ``python -m tests.faults.chaos --trials 100 --seed 0``."""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path

import click

from tests.faults.chaos.disturbed_run import Outcome, carry_out
from tests.faults.chaos.object_server import object_server
from tests.faults.chaos.summary import HEADER, last_line, summary_tables, trial_line
from tests.faults.chaos.trial_choice import START, choose_trials
from tests.faults.chaos.workshop import Workshop


@click.command()
@click.option("--trials", default=100, show_default=True, type=click.IntRange(min=1))
@click.option("--seed", default=0, show_default=True, help="The same seed, the same trials.")
@click.option("--jobs", default=1, show_default=True, help="Trials at a time.")
@click.option("--only", type=int, help="Carry out this trial alone.")
def main(trials: int, seed: int, jobs: int, only: int | None) -> None:
    """Disturb runs at random moments, start them again and compare what they computed.

    The exit code is 1 when a run could not be finished, computed something else or left
    something behind.
    """
    _let_signals_through()
    # short, and not below TMPDIR: paths of Ray's sockets have at most 107 bytes
    folder = Path(tempfile.mkdtemp(prefix="ch", dir="/tmp"))
    with object_server() as server:
        workshop = Workshop(folder, server)
        click.echo(f"preparing in {folder}")
        workshop.prepare()
        outcomes = _carry_out_all(workshop, trials, seed, jobs, only)
    good = all(outcome.good for outcome in outcomes)
    click.echo(f"\n{summary_tables(outcomes)}\n")
    if good:
        shutil.rmtree(folder)
    click.echo(last_line(outcomes))
    sys.exit(0 if good else 1)


def _carry_out_all(
    workshop: Workshop, count: int, seed: int, jobs: int, only: int | None
) -> list[Outcome]:
    trials = choose_trials(workshop.undisturbed["local"].stages, count, seed=seed)
    chosen = [trial for trial in trials if only in (None, trial.number)]
    for kind in sorted({trial.store for trial in chosen} - set(workshop.undisturbed)):
        workshop.run_undisturbed(kind)
    seconds = {kind: found.seconds[START] for kind, found in workshop.undisturbed.items()}
    told = ", ".join(f"{kind} {value:.1f} s" for kind, value in seconds.items())
    click.echo(f"undisturbed, from start to the first stage: {told}\n{HEADER}")
    outcomes = []
    with ThreadPoolExecutor(jobs) as pool:
        for outcome in pool.map(carry_out, chosen, repeat(workshop)):
            outcomes.append(outcome)
            click.echo(trial_line(outcome))
            if outcome.good:
                for folder in workshop.folder.glob(f"{outcome.trial.number}[abc]"):
                    shutil.rmtree(folder, ignore_errors=True)
    return outcomes


def _let_signals_through() -> None:
    """Signals ignored here, as in the background or below nohup, would be ignored by every run."""
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    # so that the server and the runs end with this process
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


if __name__ == "__main__":
    main()
