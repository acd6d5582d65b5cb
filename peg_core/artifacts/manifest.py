"""The last file of an artifact: what it is, what it came from, what it holds."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import xxhash

from peg_core.artifacts.integrity import DamagedArtifact, folder_damage, record_files
from peg_core.atomic_file import write_json
from peg_core.errors import InputError
from peg_core.storage.file_record import MANIFEST_NAME, FileRecord

CHECKSUM = "checksum"
UNREADABLE = f"{MANIFEST_NAME} is not what was written"
PARTS_BELOW = 3  # a part is at most so many folders below its artifact


@dataclass(frozen=True)
class Identity:
    """Everything that an artifact depends on; cluster settings are not among it."""

    stage: str
    version: int
    settings: dict[str, Any]
    inputs: dict[str, str]
    files: dict[str, list[dict[str, Any]]]

    def made_from(self, stage: str) -> str:
        """The fingerprint of an input."""
        return self.inputs[stage]

    @property
    def fingerprint(self) -> str:
        text = json.dumps(dataclasses.asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Manifest:
    """Written last: an artifact without one does not exist.

    Args:
        metrics: Rows per second, bytes, memory and retries.
        files: The other files as they were written; none where an older version wrote them.
    """

    identity: Identity
    fingerprint: str
    started: str
    finished: str
    seconds: float
    peak_memory_bytes: int
    counts: dict[str, Any] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    metrics: dict[str, Any] = field(default_factory=dict)
    files: dict[str, FileRecord] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        write_json(folder / MANIFEST_NAME, self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """What is written: the fields, and a checksum over them."""
        values = dataclasses.asdict(self)
        return {**values, CHECKSUM: _checksum(values)}

    @classmethod
    def read(cls, folder: Path) -> Manifest | None:
        """The manifest of an artifact, or None where there is none that can be read."""
        try:
            return cls.of(json.loads((folder / MANIFEST_NAME).read_bytes()))
        except (OSError, ValueError):
            return None

    @classmethod
    def require(cls, folder: Path) -> Manifest:
        """The manifest of an artifact that is known to be whole."""
        manifest = cls.read(folder)
        if manifest is None:
            raise InputError(
                f"{folder} is no finished artifact: {MANIFEST_NAME} is missing or cannot be read; "
                "run `peg run` again"
            )
        return manifest

    @classmethod
    def of(cls, values: dict[str, Any]) -> Manifest:
        """The manifest of a decoded file; what a newer version added is left out."""
        try:
            values = dict(values)
            if values.pop(CHECKSUM, None) not in (None, _checksum(values)):
                raise ValueError("its checksum is another")
            known = {item.name: values[item.name] for item in _fields(cls, values)}
            identity = {item.name: values["identity"][item.name] for item in _fields(Identity)}
            files = {name: FileRecord.of(value) for name, value in known.get("files", {}).items()}
            return cls(**{**known, "identity": Identity(**identity), "files": files})
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a manifest: {error!r}") from error

    def sealed(self, folder: Path, *, without: Collection[str] = ()) -> Manifest:
        """With the files that are there now, but for those named."""
        return self.with_files(record_files(folder, without={MANIFEST_NAME, *without}))

    def with_files(self, files: dict[str, FileRecord]) -> Manifest:
        """With these files."""
        return dataclasses.replace(self, files=files)

    def damage(self, folder: Path, *, contents: bool) -> str | None:
        """What is wrong with the artifact in ``folder``, in words; None: nothing."""
        return folder_damage(folder, self.files, contents=contents)

    @property
    def sizes(self) -> dict[str, int]:
        """Name to bytes of the files."""
        return {name: record.bytes for name, record in self.files.items()}


def artifact_damage(folder: Path, *, contents: bool) -> str | None:
    """What is wrong with a finished artifact; None: nothing, or it is not finished."""
    manifest = Manifest.read(folder)
    if manifest is not None:
        return manifest.damage(folder, contents=contents)
    return UNREADABLE if (folder / MANIFEST_NAME).exists() else None


def require_whole(folder: Path, *, contents: bool) -> None:
    """Refuse a folder, or a part of one, whose manifest says that something else was written."""
    for root in (folder, *folder.parents[:PARTS_BELOW]):
        if (root / MANIFEST_NAME).exists():
            damage = artifact_damage(root, contents=contents)
            if damage is not None:
                remedy = "make it again: run `peg run` with its pipeline file"
                raise DamagedArtifact.of(root, damage, remedy)
            return


def _checksum(values: dict[str, Any]) -> str:
    """Of decoded values, whatever the layout of the text."""
    values = {key: value for key, value in values.items() if key != CHECKSUM}
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return xxhash.xxh3_128_hexdigest(text.encode())


def _fields(
    kind: type[Manifest | Identity], values: Collection[str] | None = None
) -> list[dataclasses.Field[Any]]:
    """The fields of a type; those with a default only where there is a value."""
    return [
        item
        for item in dataclasses.fields(kind)
        if values is None
        or item.name in values
        or (item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING)
    ]
