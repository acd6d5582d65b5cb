"""Artifacts in an object store; each machine has those files in its cache that it opened."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

from peg_core.artifacts.integrity import size_damage
from peg_core.artifacts.manifest import UNREADABLE, Manifest
from peg_core.errors import PegError
from peg_core.object_url import StorageError
from peg_core.storage.file_record import MANIFEST_NAME, FileRecord
from peg_core.storage.mirror import ATTEMPT_NAME, Attempt, cache_of
from peg_core.storage.object_storage import CURRENT_NAME, Storage, StoredFile
from peg_core.storage.stored_path import drop_unpublished
from pipeline.store.remote_lease import RemoteLease, current_holder
from workers.artifact_ref import AnyRef, ArtifactFolder, ArtifactRef

MARKERS = "done"


class RemoteArtifactStore:
    """The store of :class:`pipeline.store.local_store.ArtifactStore`, in an object store.

    Whoever writes a file for a stage brings it to the store itself, with the marks of finished
    shards: an interrupted stage goes on on any machine. :meth:`commit` writes the manifest.
    """

    def __init__(self, root: str) -> None:
        self.storage = Storage(root)
        self._cache = cache_of(self.storage.location())
        self._lease: RemoteLease | None = None
        self._run = uuid.uuid4().hex  # contents are compared once per machine and run

    def ref(self, stage: str, fingerprint: str, *, finished: bool) -> AnyRef:
        """The artifact, by a name that tasks can open on any machine."""
        name = f"{stage}/{fingerprint}"
        attempt = Attempt.of(self.storage, name, finished=finished, run=self._run)
        return ArtifactRef(attempt.store, stage, fingerprint, ArtifactFolder, attempt=attempt)

    def find(self, stage: str, fingerprint: str) -> Manifest | None:
        """The manifest of a finished artifact whose files are all there, or None."""
        manifest = self._manifest(stage, fingerprint)
        if manifest is None or size_damage(self._sizes(stage, fingerprint), manifest.files):
            return None
        return manifest

    def damage(self, stage: str, fingerprint: str, *, contents: bool) -> str | None:
        """What is wrong with a finished artifact, in words; None: nothing, or not finished.

        Contents are looked at where they are read, as they come.
        """
        del contents
        manifest = self._manifest(stage, fingerprint)
        if manifest is not None:
            return size_damage(self._sizes(stage, fingerprint), manifest.files)
        name = f"{stage}/{fingerprint}/{MANIFEST_NAME}"
        return UNREADABLE if self.storage.exists(name) else None

    def set_aside(self, stage: str, fingerprint: str) -> str:
        """Let a damaged artifact count as never begun."""
        name = f"{stage}/{fingerprint}"
        self.storage.delete(f"{name}/{MANIFEST_NAME}")
        self.storage.delete(f"{name}/{ATTEMPT_NAME}")
        return self.storage.location(name)

    def newest(self, stage: str) -> Manifest | None:
        """The manifest written last, to say what changed since."""
        found = [self.find(stage, name) for name in self.storage.folders(stage)]
        whole = [manifest for manifest in found if manifest is not None]
        return max(whole, key=lambda manifest: manifest.finished, default=None)

    def current(self, stage: str) -> Manifest | None:
        """What the last run used, where it still exists."""
        fingerprint = self._current().get(stage)
        return None if fingerprint is None else self.find(stage, fingerprint)

    def finished_shards(self, stage: str, fingerprint: str) -> int | None:
        """Of an artifact that is not finished; None: nobody has begun with it."""
        names = [file.name for file in self.storage.files(f"{stage}/{fingerprint}")]
        return sum(_is_marker(name) for name in names) if names else None

    def prepare(self, stage: str, fingerprint: str, *, afresh: bool) -> AnyRef:
        """The artifact to fill; what any machine has finished of it is kept unless afresh."""
        name = f"{stage}/{fingerprint}"
        if afresh or self.storage.read_json(f"{name}/{ATTEMPT_NAME}") is None:
            self.storage.delete(name)
            self.storage.write_json(f"{name}/{ATTEMPT_NAME}", {"token": uuid.uuid4().hex})
        ref = self.ref(stage, fingerprint, finished=False)
        folder = Path(str(ref.folder))
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise PegError(
                f"cannot write to the cache {folder} ({error.strerror}); "
                "check PEG_CACHE_DIR, its permissions and the free space"
            ) from error
        drop_unpublished(ref.folder)
        return ref

    def fetch(self, stage: str, fingerprint: str) -> AnyRef:
        """A finished artifact; its files come to a machine when they are opened there."""
        if self._manifest(stage, fingerprint) is None:
            raise PegError(
                f"{self.storage.location(f'{stage}/{fingerprint}')} holds no finished artifact; "
                f"it was removed while the run needed it: run again with `--force {stage}`"
            )
        return self.ref(stage, fingerprint, finished=True)

    def commit(
        self, manifest: Manifest, artifact: AnyRef, files: dict[str, FileRecord]
    ) -> Manifest:
        """Check that all files that were written are in the store, then write the manifest."""
        del artifact
        name = f"{manifest.identity.stage}/{manifest.fingerprint}"
        there = {file.name[len(name) + 1 :]: file for file in self.storage.files(name)}
        kept = {n: f for n, f in there.items() if not (n == ATTEMPT_NAME or _is_marker(n))}
        whole = manifest.with_files({n: self._record(n, f, files) for n, f in kept.items()})
        self._require_lease()
        self.storage.write_json(f"{name}/{MANIFEST_NAME}", whole.as_dict())
        self._cache.evict()
        return whole

    def bytes_written(self, artifact: AnyRef) -> int:
        """By all machines."""
        return sum(self._sizes(artifact.stage, artifact.fingerprint).values())

    def abandon(self, artifact: AnyRef) -> None:
        """Remove an artifact that nobody will go on with."""
        self.storage.delete(f"{artifact.stage}/{artifact.fingerprint}")

    def point_current(self, stage: str, fingerprint: str) -> None:
        """Note in ``current.json`` which artifact of the stage the last run used."""
        current = self._current()
        if current.get(stage) != fingerprint:
            self.storage.write_json(CURRENT_NAME, {**current, stage: fingerprint})

    def location(self, stage: str, fingerprint: str) -> str:
        """Where a user finds the artifact."""
        return self.storage.location(f"{stage}/{fingerprint}")

    def lease(self) -> RemoteLease:
        """To be held while the store is written."""
        self._lease = RemoteLease(self.storage)
        return self._lease

    def holder(self) -> dict[str, Any] | None:
        """The run that has the store, if there is one."""
        return current_holder(self.storage)

    def close(self) -> None:
        """Give the cached artifacts free."""
        self._cache.close()

    def _record(self, name: str, file: StoredFile, written: dict[str, FileRecord]) -> FileRecord:
        """What was written; of a file that nobody told of, what is there."""
        record = written.get(name)
        if record is None:
            return FileRecord(file.bytes, self.storage.digest(file.name))
        if record.bytes != file.bytes:
            raise StorageError(
                f"{self.storage.location(file.name)} did not arrive complete: found "
                f"{file.bytes:,}, needed {record.bytes:,} bytes; run again: the artifact counts "
                "only when all of it is there"
            )
        return record

    def _manifest(self, stage: str, fingerprint: str) -> Manifest | None:
        """The manifest, or None where there is none that can be read."""
        try:
            values = self.storage.read_json(f"{stage}/{fingerprint}/{MANIFEST_NAME}")
            return None if values is None else Manifest.of(values)
        except ValueError:
            return None
        except StorageError as error:
            if isinstance(error.__cause__, ValueError):
                return None
            raise

    def _current(self) -> dict[str, str]:
        """What the last run used; nothing where the note cannot be read."""
        try:
            current = self.storage.read_json(CURRENT_NAME)
        except StorageError as error:
            if not isinstance(error.__cause__, ValueError):
                raise
            current = None
        return current if isinstance(current, dict) else {}

    def _sizes(self, stage: str, fingerprint: str) -> dict[str, int]:
        name = f"{stage}/{fingerprint}"
        return {file.name[len(name) + 1 :]: file.bytes for file in self.storage.files(name)}

    def _require_lease(self) -> None:
        if self._lease is not None:
            self._lease.require_held()


def _is_marker(name: str) -> bool:
    return MARKERS in name.split("/")[:-1]
