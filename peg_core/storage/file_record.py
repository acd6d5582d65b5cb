"""What a file was when it was written: its size and its checksum."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import xxhash

# The last file of an artifact; it names all others.
MANIFEST_NAME = "manifest.json"
# A disk is shared with the run itself: small pieces.
CHUNK_BYTES = 4 * 2**20


@dataclass(frozen=True)
class FileRecord:
    """A file as it was written.

    Args:
        bytes: Its size.
        xxh3: XXH3-128 of its contents; None where an older version wrote it.
    """

    bytes: int
    xxh3: str | None = None

    @classmethod
    def of(cls, value: int | dict[str, object]) -> Self:
        """From a manifest; older ones have the size alone."""
        if isinstance(value, int):
            return cls(value)
        size, digest = value["bytes"], value.get("xxh3")
        if not isinstance(size, int) or not isinstance(digest, str | None):
            raise TypeError(f"a file record needs a size and a checksum, found {value}")
        return cls(size, digest)

    @classmethod
    def of_file(cls, path: Path) -> Self:
        """The record of a file as it is now."""
        return cls(path.stat().st_size, file_digest(path))

    def matches(self, path: Path) -> bool:
        """Whether a file has the size and the contents that were written."""
        if not path.is_file() or path.stat().st_size != self.bytes:
            return False
        return self.xxh3 is None or file_digest(path) == self.xxh3


def digest(file: Any) -> str:
    """The checksum of what is left of an open file."""
    state = xxhash.xxh3_128()
    while chunk := file.read(CHUNK_BYTES):
        state.update(chunk)
    return state.hexdigest()


def file_digest(path: Path) -> str:
    """The checksum of a file."""
    with path.open("rb", buffering=0) as file:
        return digest(file)
