"""Tries every kind and writes docs/robustness.md; a word as argument chooses kinds and rows."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.faults.bad_inputs.all_kinds import all_kinds
from tests.faults.bad_inputs.table import page_of, page_with, totals_of
from tests.faults.bad_inputs.trial import Trial, Trials
from workers.cluster import Cluster
from workers.cluster_settings import ClusterSettings

PAGE = Path(__file__).parents[3] / "docs/robustness.md"


def main(word: str | None) -> int:
    """The number of kinds that are not as expected."""
    chosen = [kind for kind in all_kinds() if word is None or word in f"{kind.group}: {kind.name}"]
    cluster = Cluster(ClusterSettings(workers=2))
    cluster.connect()
    done: list[Trial] = []
    with tempfile.TemporaryDirectory(prefix="peg-bad-inputs-") as folder:
        trials = Trials(Path(folder))
        for kind in chosen:
            started = time.monotonic()
            done.append(trials.try_kind(kind))
            if not done[-1].as_expected:
                took = time.monotonic() - started
                sys.stdout.write(_told(done[-1], took))
                sys.stdout.flush()
    cluster.close()
    sys.stdout.write(f"{totals_of(done)}\n")
    PAGE.write_text(page_of(done) if word is None else page_with(done, PAGE.read_text()))
    return sum(not trial.as_expected for trial in done)


def _told(trial: Trial, seconds: float) -> str:
    kind = trial.kind
    wanted = " or ".join(outcome.value for outcome in kind.expected)
    last = "\n    ".join([line for line in trial.output.splitlines() if line.strip()][-6:])
    return (
        f"{kind.group}: {kind.name}\n  {kind.command}\n  {trial.outcome.value}, expected {wanted} "
        f"and /{kind.says}/, {seconds:.1f} s\n    {last}\n"
    )


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1] if len(sys.argv) > 1 else None) else 0)
