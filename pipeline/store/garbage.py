"""Artifacts that nothing needs any more."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path

from peg_core.artifacts.manifest import Manifest
from peg_core.storage.object_storage import Storage
from pipeline.config.loading import load_config
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.job_submission import absolute_locations
from pipeline.run.refresh import artifacts_in_use
from pipeline.run.runner import plan_run
from pipeline.schedule.schedule import Schedule
from pipeline.stages import STAGES
from pipeline.store.local_store import DAMAGED, AnyStore, open_store

Name = tuple[str, str]  # stage, fingerprint


@dataclass(frozen=True)
class StoredArtifact:
    """A folder of the store.

    Args:
        finished: When it was done; none: a run stopped on the way to it.
        needed_by: Why it stays; none: nothing needs it.
    """

    stage: str
    fingerprint: str
    bytes: int
    finished: str | None
    needed_by: str | None


def reached_by_file(file: Path, overrides: tuple[str, ...] = (), folder: Path = Path()
) -> set[Name]:  # fmt: skip
    """What runs of a pipeline file use: started in ``folder``, or submitted from there."""
    with chdir(folder):
        here = load_config(file, overrides)
        submitted = load_config(file, (*overrides, *absolute_locations(here, Path.cwd())))
        return _reached(here) | _reached(submitted)


def reached_by_schedule(schedule: Schedule) -> set[Name]:
    """What the runs of a schedule use."""
    return reached_by_file(Path(schedule.config), schedule.overrides, Path(schedule.folder))


def list_artifacts(
    location: str, reached: Mapping[str, Collection[Name]], *, keep: int
) -> list[StoredArtifact]:
    """Every artifact of a store, and what needs it.

    Args:
        reached: Artifacts by the name of the file or schedule that uses them.
        keep: Finished artifacts of each stage that stay in any case, the newest.
    """
    storage, store = Storage(location), open_store(location)
    found = []
    for stage in (*STAGES, "drift"):
        manifests = {name: store.find(stage, name) for name in storage.folders(stage)}
        newest = _newest(manifests.values(), keep)
        for fingerprint, manifest in manifests.items():
            name = (stage, fingerprint)
            needed = next((who for who, names in reached.items() if name in names), None)
            if needed is None and fingerprint in newest:
                needed = f"the last {keep}"
            if needed is None and _is_current(store, storage, stage, fingerprint):
                needed = "the last run"
            size = sum(file.bytes for file in storage.files(f"{stage}/{fingerprint}"))
            finished = manifest.finished if manifest is not None else None
            found.append(StoredArtifact(stage, fingerprint, size, finished, needed))
    for folder in storage.folders(DAMAGED):
        size = sum(file.bytes for file in storage.files(f"{DAMAGED}/{folder}"))
        found.append(StoredArtifact(DAMAGED, folder, size, None, None))
    return found


def delete_artifacts(location: str, artifacts: Iterable[StoredArtifact]) -> None:
    """Remove artifacts, the manifest of each first; whoever calls holds the store's lease."""
    storage = Storage(location)
    for artifact in artifacts:
        storage.delete(f"{artifact.stage}/{artifact.fingerprint}")


def _reached(config: PipelineConfig) -> set[Name]:
    planned = {(step.stage.name, step.fingerprint) for step in plan_run(config)}
    return planned | artifacts_in_use(open_store(config.store))


def _newest(manifests: Iterable[Manifest | None], keep: int) -> set[str]:
    whole = [manifest for manifest in manifests if manifest is not None]
    ordered = sorted(whole, key=lambda manifest: manifest.finished, reverse=True)
    return {manifest.fingerprint for manifest in ordered[:keep]}


def _is_current(store: AnyStore, storage: Storage, stage: str, fingerprint: str) -> bool:
    """Whether the stable path that users read leads there."""
    current = (storage.read_json("current.json") or {}).get(stage)
    link = Path(store.location(stage, fingerprint))
    return current == fingerprint or (link.is_symlink() and link.resolve().name == fingerprint)
