"""The last file of an artifact: what it is, what it came from, what it holds."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peg_core.atomic_file import write_json
from peg_core.errors import InputError

MANIFEST_NAME = "manifest.json"


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
        metrics: Rows a second, bytes, memory and retries.
        files: Name to bytes of the other files, where the store is remote: what must arrive.
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
    files: dict[str, int] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        write_json(folder / MANIFEST_NAME, dataclasses.asdict(self))

    @classmethod
    def read(cls, folder: Path) -> Manifest | None:
        """The manifest of an artifact, or None where there is none."""
        path = folder / MANIFEST_NAME
        if not path.exists():
            return None
        return cls.of(json.loads(path.read_text()))

    @classmethod
    def require(cls, folder: Path) -> Manifest:
        """The manifest of an artifact that is known to be whole."""
        manifest = cls.read(folder)
        if manifest is None:
            raise InputError(f"{folder} is no finished artifact: {MANIFEST_NAME} is missing")
        return manifest

    @classmethod
    def of(cls, values: dict[str, Any]) -> Manifest:
        """The manifest of a decoded file."""
        return cls(**{**values, "identity": Identity(**values["identity"])})
