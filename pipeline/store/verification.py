"""Every artifact of a store, compared with what was written."""

from __future__ import annotations

from dataclasses import dataclass

from peg_core.artifacts.integrity import content_damage
from peg_core.storage.object_storage import Storage
from pipeline.stages import STAGES
from pipeline.store.local_store import AnyStore, open_store


@dataclass(frozen=True)
class VerifiedArtifact:
    """An artifact and how it is.

    Args:
        state: ``whole``, ``damaged``, ``unfinished``, or ``unknown`` where its manifest is of a
            version that did not write checksums.
        damage: What is wrong, in words.
    """

    stage: str
    fingerprint: str
    files: int
    bytes: int
    state: str
    damage: str | None = None


def verify_store(location: str, *, contents: bool) -> list[VerifiedArtifact]:
    """Look at everything that a store holds; nothing is changed."""
    storage, store = Storage(location), open_store(location)
    return [
        _verify(storage, store, stage, name, contents=contents)
        for stage in (*STAGES, "drift")
        for name in storage.folders(stage)
    ]


def _verify(
    storage: Storage, store: AnyStore, stage: str, fingerprint: str, *, contents: bool
) -> VerifiedArtifact:
    name = f"{stage}/{fingerprint}"
    found = storage.files(name)
    damage = store.damage(stage, fingerprint, contents=False)
    manifest = store.find(stage, fingerprint)
    if damage is None and manifest is not None and contents:
        damage = content_damage(manifest.files, lambda file: storage.digest(f"{name}/{file}"))
    if damage is not None:
        state = "damaged"
    elif manifest is None:
        state = "unfinished"
    else:
        is_known = all(record.xxh3 is not None for record in manifest.files.values())
        state = "whole" if manifest.files and is_known else "unknown"
    size = sum(file.bytes for file in found)
    return VerifiedArtifact(stage, fingerprint, len(found), size, state, damage)
