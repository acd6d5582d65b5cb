"""Paths below an artifact of an object store: the same on every machine.

A :class:`StoredPath` is a path in this machine's cache. Opening it brings the file when it is
not here yet; pickled it names the artifact, not the machine. Whoever writes and reads files
below an artifact need not know where the store is.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator, Iterable
from fnmatch import fnmatchcase
from pathlib import Path, PosixPath
from typing import Any

from peg_core.storage.file_record import FileRecord
from peg_core.storage.mirror import Attempt, Mirror

_mirrors: dict[str, Mirror] = {}  # by the text of their root


def stored_folder(attempt: Attempt) -> StoredPath:
    """The folder of an artifact on this machine."""
    mirror = Mirror(attempt)
    known = _mirrors.get(str(mirror.root))
    if known is None or known.attempt != attempt:
        _mirrors[str(mirror.root)] = mirror
    return StoredPath(mirror.root)


class StoredPath(PosixPath):
    """A path that brings its file to this machine when it is opened."""

    def __fspath__(self) -> str:
        if not self.name.startswith("."):
            mirror, name = _mirror_of(self)
            mirror.bring(name)
        return str(self)

    def __reduce__(self) -> tuple[Callable[..., Path], tuple[Any, ...]]:
        mirror, name = _mirror_of(self)
        return _restore, (mirror.attempt, name)

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """Folders are those of this machine alone."""
        Path(str(self)).mkdir(mode, parents, exist_ok)

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove the file here and in the store."""
        del missing_ok
        remove(self)

    def glob(self, pattern: str) -> Generator[StoredPath, None, None]:
        """What matches right in this folder, here or in the store."""
        mirror, folder = _mirror_of(self)
        prefix = "" if folder == "." else f"{folder}/"
        below = [name.removeprefix(prefix).split("/") for name in mirror.names(folder)]
        wants_folder = pattern.endswith("/")
        found = {parts[0] for parts in below if not wants_folder or len(parts) > 1}
        chosen = sorted(name for name in found if fnmatchcase(name, pattern.rstrip("/")))
        return (self / name for name in chosen)


def _restore(attempt: Attempt, name: str) -> Path:
    return stored_folder(attempt) / name


def _mirror_of(path: Path) -> tuple[Mirror, str]:
    for parent in (path, *path.parents):
        mirror = _mirrors.get(str(parent))
        if mirror is not None:
            return mirror, str(path)[len(str(parent)) + 1 :] or "."
    raise ValueError(f"{path} is not below an artifact of an object store")


def attempt_of(path: Path) -> tuple[Attempt | None, str]:
    """The artifact of an object store that a path lies in, and its name there; or None."""
    if not isinstance(path, StoredPath):
        return None, str(path)
    mirror, name = _mirror_of(path)
    return mirror.attempt, "" if name == "." else name


def publish(paths: Iterable[Path]) -> dict[str, FileRecord]:
    """Bring files that were written here to the store; what lies in a folder is there already.

    Returns:
        What was copied, by its name in the artifact.
    """
    records: dict[str, FileRecord] = {}
    by_root: dict[str, list[str]] = {}
    for path in paths:
        if isinstance(path, StoredPath):
            mirror, name = _mirror_of(path)
            by_root.setdefault(str(mirror.root), []).append(name)
    for root, names in by_root.items():
        records |= _mirrors[root].publish(names)
    return records


def is_there(path: Path) -> bool:
    """Whether there is a file, here or in the store; it is not brought."""
    if not isinstance(path, StoredPath) or Path(str(path)).exists():
        return path.exists()
    mirror, name = _mirror_of(path)
    return mirror.holds(name)


def read_bytes(path: Path, start: int, length: int) -> bytes:
    """Some bytes of a file that is not on this machine."""
    mirror, name = _mirror_of(path)
    return mirror.read_range(name, start, length)


def readable(path: Path) -> Any:
    """A file of which little is read: what is not on this machine stays where it is."""
    if not isinstance(path, StoredPath) or Path(str(path)).exists():
        return path
    mirror, name = _mirror_of(path)
    return mirror.open_input(name)


def bring_latest(path: Path) -> Path:
    """The newest version of a file that any machine has published; the file itself in a folder."""
    if isinstance(path, StoredPath):
        mirror, name = _mirror_of(path)
        mirror.bring_latest(name)
    return path


def drop_unpublished(path: Path) -> None:
    """Forget what a killed process of this machine wrote below a path and did not publish."""
    if isinstance(path, StoredPath):
        _mirror_of(path)[0].drop_unpublished()


def remove(path: Path) -> None:
    """Remove a file or a folder with all that is in it, wherever it lies."""
    if isinstance(path, StoredPath):
        mirror, name = _mirror_of(path)
        mirror.remove(name)
    elif path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def release_mirrors() -> None:
    """A task is over: what it read may be evicted from this machine's cache."""
    for mirror in _mirrors.values():
        mirror.release()
