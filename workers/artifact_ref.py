"""What stages hand to tasks: the name of an artifact, which means the same on every machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

from peg_core.artifacts.manifest import require_whole
from peg_core.storage.mirror import Attempt
from peg_core.storage.object_storage import Storage
from peg_core.storage.stored_path import attempt_of, stored_folder


class Openable(Protocol):
    """A typed artifact: it knows the names of the files in its folder, and nobody else does."""

    @classmethod
    def open(cls, folder: Path, /) -> Self: ...


Kind = TypeVar("Kind", bound=Openable, covariant=True)
Other = TypeVar("Other", bound=Openable)


@dataclass(frozen=True)
class ArtifactRef(Generic[Kind]):
    """An artifact, or a part of one; small, picklable, opened where a task runs.

    Args:
        store: Absolute folder or URL of the store.
        stage, fingerprint: The artifact; both empty where ``store`` is the folder itself.
        kind: What it is opened as.
        part: A folder inside of it.
        attempt: Where the store is an object store: whose files they are.
    """

    store: str
    stage: str
    fingerprint: str
    kind: type[Kind]
    part: str = ""
    attempt: Attempt | None = None

    @classmethod
    def of_folder(cls, folder: Path, kind: type[Other]) -> ArtifactRef[Other]:
        """A folder by its path: one that a user names, or one inside an artifact."""
        attempt, part = attempt_of(folder)
        if attempt is not None:
            return ArtifactRef(attempt.store, "", "", kind, part, attempt)
        return ArtifactRef(str(folder.absolute()), "", "", kind)

    @property
    def folder(self) -> Path:
        """Where it is on this machine; the one place that knows.

        A folder that all machines see, or this machine's cache: there a file comes when it is
        opened.
        """
        if self.attempt is not None:
            return stored_folder(self.attempt) / self.part
        return Path(self.store) / self.stage / self.fingerprint / self.part

    @property
    def location(self) -> str:
        """Its path or URL, for people."""
        if self.attempt is None:
            return str(self.folder)
        return Storage(self.attempt.store).location(f"{self.attempt.name}/{self.part}".rstrip("/"))

    def open(self) -> Kind:
        """The artifact itself, memory-mapped on this machine; its files have their sizes."""
        if self.attempt is None:  # else they are compared as they come
            require_whole(self.folder, contents=False)
        return self.kind.open(self.folder)

    def at(self, kind: type[Other], part: str = "") -> ArtifactRef[Other]:
        """A part of it, or the same seen as something else."""
        inner = f"{self.part}/{part}" if self.part and part else self.part or part
        return ArtifactRef(self.store, self.stage, self.fingerprint, kind, inner, self.attempt)


AnyRef = ArtifactRef[Any]


@dataclass(frozen=True)
class ArtifactFolder:
    """An artifact of which nothing is known but where it is."""

    folder: Path

    @classmethod
    def open(cls, folder: Path) -> Self:
        return cls(folder)
