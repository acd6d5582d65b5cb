"""Artifacts in an object store, worked on in a folder of this machine."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

from peg_core.artifacts.manifest import MANIFEST_NAME, Manifest
from peg_core.errors import PegError
from pipeline.store.object_storage import Storage, local_sizes
from pipeline.store.remote_lease import RemoteLease, live_runs
from workers.artifact_ref import AnyRef, ArtifactFolder, ArtifactRef
from workers.node_cache import NodeCache, cache_folder, cache_limit

CURRENT_NAME = "current.json"


class RemoteArtifactStore:
    """The store of :class:`pipeline.store.local_store.ArtifactStore`, in an object store.

    A stage fills a folder of this machine's cache; :meth:`commit` uploads its files and, when
    all have arrived, the manifest. Finished shards of an interrupted stage stay in the cache of
    the machine that made them: a rerun there goes on, a rerun on another machine starts the
    stage again. Tasks open artifacts by path, so a Ray cluster of several machines needs
    ``PEG_CACHE_DIR`` on a file system that all of them share.
    """

    def __init__(self, root: str) -> None:
        self.storage = Storage(root)
        key = hashlib.sha256(self.storage.location().encode()).hexdigest()[:16]
        self._cache = NodeCache(cache_folder() / key, cache_limit())
        self._lease: RemoteLease | None = None

    def folder(self, stage: str, fingerprint: str) -> Path:
        """Where this machine works on an artifact; what is there may be unfinished or nothing."""
        return self._cache.path(f"{stage}/{fingerprint}")

    def ref(self, stage: str, fingerprint: str) -> AnyRef:
        """The artifact, finished or not, by a name that tasks can open."""
        cache = str(self._cache.path(""))
        location = self.storage.location()
        return ArtifactRef(location, stage, fingerprint, ArtifactFolder, cache=cache)

    def find(self, stage: str, fingerprint: str) -> Manifest | None:
        values = self.storage.read_json(f"{stage}/{fingerprint}/{MANIFEST_NAME}")
        return None if values is None else Manifest.of(values)

    def newest(self, stage: str) -> Manifest | None:
        """The manifest written last, to say what changed since."""
        found = [self.find(stage, name) for name in self.storage.folders(stage)]
        whole = [manifest for manifest in found if manifest is not None]
        return max(whole, key=lambda manifest: manifest.finished, default=None)

    def current(self, stage: str) -> Manifest | None:
        """What the last run used, where it still exists."""
        fingerprint = (self.storage.read_json(CURRENT_NAME) or {}).get(stage)
        return None if fingerprint is None else self.find(stage, fingerprint)

    def prepare(self, stage: str, fingerprint: str, *, afresh: bool) -> AnyRef:
        """The artifact to fill; what an interrupted run finished here is kept unless afresh."""
        name = f"{stage}/{fingerprint}"
        folder = self._cache.use(name)
        if afresh:
            self.storage.delete(name)
        # a cached manifest means that the artifact was removed from the store: begin again
        if afresh or (folder / MANIFEST_NAME).exists():
            self._cache.discard(name)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise PegError(
                f"cannot write to the cache {folder} ({error.strerror}); "
                "check PEG_CACHE_DIR, its permissions and the free space"
            ) from error
        return self.ref(stage, fingerprint)

    def fetch(self, stage: str, fingerprint: str) -> AnyRef:
        """The artifact, downloaded once per machine."""
        manifest = self.find(stage, fingerprint)
        if manifest is None:
            raise PegError(
                f"{self.storage.location(f'{stage}/{fingerprint}')} holds no finished artifact; "
                f"it was removed while the run needed it: run again with `--force {stage}`"
            )
        found = manifest

        def is_whole(folder: Path) -> bool:
            cached = Manifest.read(folder)
            same = cached is not None and (cached.started, cached.finished, cached.seconds) == (
                found.started, found.finished, found.seconds,
            )  # fmt: skip
            return same and found.files.items() <= local_sizes(folder).items()

        def fill(folder: Path) -> None:
            self.storage.download(f"{stage}/{fingerprint}", folder, found.files)
            found.write(folder)

        self._cache.fetch(f"{stage}/{fingerprint}", fill, is_whole=is_whole)
        self._cache.evict()
        return self.ref(stage, fingerprint)

    def commit(self, manifest: Manifest, artifact: AnyRef) -> Manifest:
        """Upload the data, check that it arrived, then write the manifest."""
        folder = artifact.folder
        name = f"{manifest.identity.stage}/{manifest.fingerprint}"
        whole = dataclasses.replace(manifest, files=local_sizes(folder))
        self._require_lease()
        self.storage.delete(name)  # what an interrupted upload left
        self.storage.upload(folder, name, whole.files)
        self._require_lease()
        self.storage.write_json(f"{name}/{MANIFEST_NAME}", dataclasses.asdict(whole))
        whole.write(folder)
        self._cache.evict()
        return whole

    def point_current(self, stage: str, fingerprint: str) -> None:
        """Note in ``current.json`` which artifact of the stage the last run used."""
        current = self.storage.read_json(CURRENT_NAME) or {}
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
        return next((run for run in live_runs(self.storage).values() if run["held"]), None)

    def close(self) -> None:
        """Give the cached artifacts free."""
        self._cache.close()

    def _require_lease(self) -> None:
        if self._lease is not None:
            self._lease.require_held()
