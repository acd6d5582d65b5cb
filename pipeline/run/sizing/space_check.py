"""Free disk and memory against what a run is estimated to take."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from peg_core.errors import DiskFull, PegError
from peg_core.object_url import is_url
from peg_core.storage.node_cache import cache_folder
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.plan import Action, Step
from pipeline.run.sizing.estimate import Estimate

# What makes a stage smaller.
REMEDIES = {
    "encode": "lower `dimensions` of the encodings, or `split.folds`",
    "encode_all": "lower `dimensions` of the encodings",
    "train": "set `train.batching` to sampled, or lower `train.batch_size`",
    "embed": "lower `model.hidden`, or set `embed.dtype` to float16",
    "embed_all": "lower `model.hidden`, or set `embed.dtype` to float16",
    "index": "set `recommend.index_dtype` to int8",
    "negatives": "lower `evaluate.negatives_per_positive`",
}


def require_space(
    config: PipelineConfig, steps: Iterable[Step], found: Mapping[str, Estimate]
) -> None:
    """Refuse a run that cannot fit on this machine's disk, or a task of it into its memory.

    What an interrupted run has written already counts as written. A cluster that is joined has
    other machines: their memory is not known here.

    Raises:
        DiskFull, PegError: What is there, what is needed, and what would make it fit.
    """
    needed = {
        step.stage.name: max(0, found[step.stage.name].disk_bytes - _written(config.store, step))
        for step in steps
        if step.action is Action.RUN
    }
    _require_disk(config.store, needed)
    if config.cluster.address is None:
        _require_memory({name: found[name].task_memory_bytes for name in needed})


def _require_disk(store: str, needed: Mapping[str, int]) -> None:
    """Where the store is a URL, artifacts are made in this machine's cache."""
    folder = cache_folder() if is_url(store) else Path(store).absolute()
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free, asked = shutil.disk_usage(existing).free, sum(needed.values())
    if free < asked:
        largest = max(needed, key=lambda name: needed[name])
        raise DiskFull.to_be(
            folder, free=free, needed=asked, largest=largest, remedy=REMEDIES.get(largest)
        )


def _require_memory(needed: Mapping[str, int]) -> None:
    """Tasks wait for each other where they do not fit side by side; one alone must fit."""
    there = memory_of_machine()
    for name, asked in needed.items():
        if asked > there:
            remedy = REMEDIES.get(name, "use a machine with more memory")
            raise PegError(
                f"a task of stage {name} will take about {asked / 1e9:,.1f} GB of memory, this "
                f"machine has {there / 1e9:,.1f} GB; {remedy}, or start it all the same with "
                "`peg run --anyway`"
            )


def memory_of_machine() -> int:
    """Bytes, whether they are free or not."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _written(store: str, step: Step) -> int:
    if is_url(store):
        return 0
    folder = Path(store) / step.stage.name / step.fingerprint
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
