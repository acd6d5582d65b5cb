"""What all trials share: the pipeline file, the S3 server, the caches and the undisturbed runs."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from tests.faults.chaos.peg_run import PegRun
from tests.faults.chaos.results import read_results
from tests.faults.chaos.small_pipeline import write_pipeline
from tests.faults.chaos.trial_choice import END, START
from tests.faults.chaos.trial_store import BucketStore, LocalStore, TrialStore
from tests.fixtures.object_store import ObjectStore

RUN_SECONDS = 300.0
PACKAGES = ("peg_core", "pipeline", "workers")
ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Undisturbed:
    """A run that nobody disturbed.

    Args:
        results: Content of its files, by stage and name.
        seconds: What each stage took, and the time before the first and after the last.
    """

    store: TrialStore
    results: dict[str, bytes]
    seconds: dict[str, float]

    @property
    def stages(self) -> list[str]:
        """In order."""
        return [name for name in self.seconds if name not in (START, END)]


@dataclass
class Workshop:
    """Folders and servers of all trials.

    Args:
        folder: Short, because the paths of Ray's sockets below it have at most 107 bytes.
    """

    folder: Path
    server: ObjectStore
    undisturbed: dict[str, Undisturbed] = field(default_factory=dict)

    def prepare(self) -> None:
        """Write the inputs, compile everything once, then make the run to compare with."""
        for package in PACKAGES:  # whoever edits the sources meanwhile disturbs no trial
            # with the kernels that are compiled already
            shutil.copytree(ROOT / package, self.folder / "sources" / package)
        self.config = write_pipeline(self.folder)
        # the last bits of a training may depend on whether kernels were compiled or loaded
        self._run_undisturbed("warm", "local")
        self.run_undisturbed("local")

    def run_undisturbed(self, kind: str) -> None:
        """Make the run that trials on such a store are compared with."""
        self.undisturbed[kind] = self._run_undisturbed(f"u-{kind}", kind)

    def new_store(self, kind: str, folder: Path) -> TrialStore:
        return LocalStore(folder / "store") if kind == "local" else BucketStore(self.server)

    def start(self, store: TrialStore, folder: Path, number: int) -> PegRun:
        """Start the pipeline on a store, with temporary files in the trial's folder."""
        temporary, ray = folder / "t", folder / "r"
        for path in (temporary, ray):
            path.mkdir(exist_ok=True)
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("RAY_")},
            "PYTHONPATH": str(self.folder / "sources"),
            "PEG_CACHE_DIR": str(folder / "cache"),
            "TMPDIR": str(temporary),
            "RAY_TMPDIR": str(ray),
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        return PegRun(self.config, store.address, folder, environment, number)

    def _run_undisturbed(self, name: str, kind: str) -> Undisturbed:
        folder = self.folder / name
        folder.mkdir()
        store = self.new_store(kind, folder)
        run = self.start(store, folder, 1)
        if run.wait(RUN_SECONDS) != 0:
            raise RuntimeError(f"the undisturbed run failed, see {run.output_file}")
        results = read_results(store.as_folder(folder / "copy"))
        return Undisturbed(store, results, phase_seconds(run))


def phase_seconds(run: PegRun) -> dict[str, float]:
    """What each stage took, and what came before the first and after the last."""
    events = run.events()
    times = {
        (event["event"], event["stage"]): datetime.fromisoformat(event["time"]).timestamp()
        for event in events
        if event["event"] in ("stage_started", "stage_finished")
    }
    stages = [stage for kind, stage in times if kind == "stage_started"]
    found = {START: run.first_stage_seconds or 0.0}
    for stage in stages:
        found[stage] = times["stage_finished", stage] - times["stage_started", stage]
    last = datetime.fromisoformat(events[-1]["time"]).timestamp()
    found[END] = max(last - times["stage_finished", stages[-1]], 0.1)
    return found
