"""What stages hand to tasks: the name of an artifact, which means the same on every machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar


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
        cache: Where the artifacts of an object store are kept: a folder that every machine of
            the cluster sees. None: the store itself is one.
    """

    store: str
    stage: str
    fingerprint: str
    kind: type[Kind]
    part: str = ""
    cache: str | None = None

    @classmethod
    def of_folder(cls, folder: Path, kind: type[Other]) -> ArtifactRef[Other]:
        """A folder that is no artifact of a store, such as one that a user names."""
        return ArtifactRef(str(folder.absolute()), "", "", kind)

    @property
    def folder(self) -> Path:
        """Where it is on this machine; the one place that knows."""
        root = self.store if self.cache is None else self.cache
        return Path(root) / self.stage / self.fingerprint / self.part

    def open(self) -> Kind:
        """The artifact itself, memory-mapped on this machine."""
        return self.kind.open(self.folder)

    def at(self, kind: type[Other], part: str = "") -> ArtifactRef[Other]:
        """A part of it, or the same seen as something else."""
        inner = f"{self.part}/{part}" if self.part and part else self.part or part
        return ArtifactRef(self.store, self.stage, self.fingerprint, kind, inner, self.cache)


AnyRef = ArtifactRef[Any]


@dataclass(frozen=True)
class ArtifactFolder:
    """An artifact of which nothing is known but where it is."""

    folder: Path

    @classmethod
    def open(cls, folder: Path) -> Self:
        return cls(folder)
