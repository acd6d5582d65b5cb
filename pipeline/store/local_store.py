"""Where artifacts live: ``<store>/<stage>/<fingerprint>/``."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peg_core.artifacts.manifest import Manifest, artifact_damage
from peg_core.atomic_file import remove_leftovers
from peg_core.errors import ConfigError, PegError
from peg_core.object_url import is_url
from peg_core.storage.file_record import MANIFEST_NAME, FileRecord
from peg_core.storage.object_storage import local_sizes
from pipeline.store.lease import Lease, is_alive, read_holder
from pipeline.store.remote_store import RemoteArtifactStore
from workers.artifact_ref import AnyRef, ArtifactFolder, ArtifactRef

DAMAGED = "damaged"  # what was set aside


@dataclass(frozen=True)
class ArtifactStore:
    """A folder of artifacts."""

    root: Path

    def folder(self, stage: str, fingerprint: str) -> Path:
        return self.root / stage / fingerprint

    def ref(self, stage: str, fingerprint: str) -> AnyRef:
        """The artifact, finished or not, by a name that tasks can open."""
        return ArtifactRef(str(self.root.absolute()), stage, fingerprint, ArtifactFolder)

    def find(self, stage: str, fingerprint: str) -> Manifest | None:
        """The manifest of a finished artifact whose files are all there, or None."""
        manifest = Manifest.read(self.folder(stage, fingerprint))
        if manifest is None or manifest.damage(self.folder(stage, fingerprint), contents=False):
            return None
        return manifest

    def damage(self, stage: str, fingerprint: str, *, contents: bool) -> str | None:
        """What is wrong with a finished artifact, in words; None: nothing, or not finished."""
        return artifact_damage(self.folder(stage, fingerprint), contents=contents)

    def set_aside(self, stage: str, fingerprint: str) -> str:
        """Take a damaged artifact out of the way; returns where it can be looked at."""
        grave = self.root / DAMAGED / f"{stage}-{fingerprint}-{time.time_ns()}"
        grave.parent.mkdir(exist_ok=True)
        self.folder(stage, fingerprint).rename(grave)
        return str(grave)

    def newest(self, stage: str) -> Manifest | None:
        """The manifest written last, to say what changed since."""
        manifests = [Manifest.read(folder) for folder in (self.root / stage).glob("*/")]
        found = [manifest for manifest in manifests if manifest is not None]
        return max(found, key=lambda manifest: manifest.finished, default=None)

    def current(self, stage: str) -> Manifest | None:
        """What the last run used, where it still exists."""
        return Manifest.read(self.root / "current" / stage)

    def prepare(self, stage: str, fingerprint: str, *, afresh: bool) -> AnyRef:
        """The artifact to fill; what an interrupted run finished is kept unless ``afresh``."""
        folder = self.folder(stage, fingerprint)
        if afresh and folder.exists():
            # the manifest goes first: a kill in between leaves no artifact that looks whole
            (folder / MANIFEST_NAME).unlink(missing_ok=True)
            shutil.rmtree(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            file = next(path for path in (folder, *folder.parents) if path.exists())
            raise PegError(
                f"{file} is a file where a folder is needed; remove it, and run again"
            ) from error
        except OSError as error:
            raise PegError(
                f"cannot write to the store {self.root} ({error.strerror}); "
                "check `store`, its permissions and the free space"
            ) from error
        return self.ref(stage, fingerprint)

    def point_current(self, stage: str, fingerprint: str) -> Path:
        """Make ``<store>/current/<stage>`` lead to the artifact; a stable path for users."""
        link = self.root / "current" / stage
        link.parent.mkdir(parents=True, exist_ok=True)
        temporary = link.with_name(f".{stage}.{os.getpid()}")
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(Path("..") / stage / fingerprint)
        temporary.replace(link)
        return link

    def fetch(self, stage: str, fingerprint: str) -> AnyRef:
        """A finished artifact; here it is where it was made."""
        return self.ref(stage, fingerprint)

    def commit(
        self, manifest: Manifest, artifact: AnyRef, files: dict[str, FileRecord]
    ) -> Manifest:
        """Declare the artifact finished."""
        del files  # all are here
        remove_leftovers(artifact.folder)
        manifest = manifest.sealed(artifact.folder)
        manifest.write(artifact.folder)
        return manifest

    def bytes_written(self, artifact: AnyRef) -> int:
        """By all tasks."""
        return sum(local_sizes(artifact.folder).values())

    def abandon(self, artifact: AnyRef) -> None:
        """Remove an artifact that nobody will go on with."""
        shutil.rmtree(artifact.folder)

    def finished_shards(self, stage: str, fingerprint: str) -> int | None:
        """Of an artifact that is not finished; None: nobody has begun with it."""
        folder = self.folder(stage, fingerprint)
        return len(list(folder.rglob("done/*.json"))) if folder.exists() else None

    def location(self, stage: str, fingerprint: str) -> str:
        """Where a user finds the artifact of the last run."""
        del fingerprint
        return str(self.root / "current" / stage)

    def lease(self) -> Lease:
        """To be held while the store is written."""
        return Lease(self.root)

    def holder(self) -> dict[str, Any] | None:
        """The run that has the store, if there is one."""
        holder = read_holder(self.root / "lease.json")
        return holder if holder is not None and is_alive(holder) else None

    def close(self) -> None:
        """Nothing is held open."""


AnyStore = ArtifactStore | RemoteArtifactStore


def open_store(location: str) -> AnyStore:
    """The store of a configuration: a folder, or the URL of an object store."""
    if is_url(location):
        return RemoteArtifactStore(location)
    root = Path(location)
    if root.exists() and not root.is_dir():
        raise ConfigError(f"store {location} is a file, needed is a folder; change `store`")
    return ArtifactStore(root)
