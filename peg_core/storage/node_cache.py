"""Artifacts of a remote store on this machine's disk: fetched once, evicted by last use.

Every entry has lock files. ``fill`` is held alone while a file of the entry is fetched, so a
second process waits and finds it there. ``use`` is shared by all that work with the
entry; what nobody uses can be evicted. The locks belong to open files (flock): the
kernel gives them back when their holder is killed.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

DEFAULT_BYTES = 50 * 10**9
FILL_LOCKS = 32
logger = logging.getLogger(__name__)


def cache_folder() -> Path:
    """``PEG_CACHE_DIR``, or a folder in the user's home."""
    return Path(os.environ.get("PEG_CACHE_DIR") or Path.home() / ".cache" / "peg").absolute()


def cache_limit() -> int:
    """``PEG_CACHE_BYTES``, or 50 GB."""
    return int(os.environ.get("PEG_CACHE_BYTES") or DEFAULT_BYTES)


class NodeCache:
    """Entries are folders, named ``a/b/c`` below ``folder``.

    Args:
        folder: Of this cache; several processes may share it.
        limit_bytes: What :meth:`evict` brings the cache down to.
    """

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self.folder = folder
        self.limit_bytes = limit_bytes
        self._used: dict[str, IO[bytes]] = {}

    def path(self, name: str) -> Path:
        return self.folder / "entries" / name

    def use(self, name: str) -> Path:
        """Keep an entry from eviction until :meth:`close`; its folder may not exist yet."""
        if name not in self._used:
            self._used[name] = self._lock(name, "use", fcntl.LOCK_SH)
        os.utime(self._lock_path(name, "use"))
        return self.path(name)

    @contextmanager
    def filling(self, name: str, file: str) -> Iterator[None]:
        """No other process of this machine fetches the same file of an entry meanwhile.

        Files share a few locks, so that there are not as many of them as files.
        """
        self.use(name)
        with self._held(name, f"fill-{zlib.crc32(file.encode()) % FILL_LOCKS}"):
            yield

    def discard(self, name: str) -> None:
        """Remove an entry at once: a kill never leaves a part of it under its name."""
        trash = self.folder / "trash" / uuid.uuid4().hex
        trash.parent.mkdir(parents=True, exist_ok=True)
        try:
            self.path(name).rename(trash)
        except FileNotFoundError:
            return
        shutil.rmtree(trash, ignore_errors=True)

    def evict(self) -> list[str]:
        """Remove unused entries, the least recently used first, until the limit is kept."""
        shutil.rmtree(self.folder / "trash", ignore_errors=True)
        sizes = {name: _size(self.path(name)) for name in self._names()}
        total = sum(sizes.values())
        evicted = []
        for name in sorted(sizes, key=self._last_use):
            if total <= self.limit_bytes:
                break
            if self._try_discard(name):
                total -= sizes[name]
                evicted.append(name)
        if total > self.limit_bytes:
            logger.warning(
                "the cache %s holds %s bytes in use, its limit is %s: raise PEG_CACHE_BYTES",
                self.folder, f"{total:,}", f"{self.limit_bytes:,}",
            )  # fmt: skip
        return evicted

    def close(self) -> None:
        """Entries that were used may be evicted from now on."""
        for file in self._used.values():
            file.close()
        self._used.clear()

    def _try_discard(self, name: str) -> bool:
        try:
            with self._held(name, "use", fcntl.LOCK_NB):
                self.discard(name)
        except BlockingIOError:
            return False
        return True

    def _names(self) -> list[str]:
        entries = self.folder / "entries"
        locks = (self.folder / "locks").glob("*.use")
        names = [file.name.removesuffix(".use").replace("%", "/") for file in locks]
        return [name for name in names if (entries / name).exists()]

    def _last_use(self, name: str) -> int:
        return self._lock_path(name, "use").stat().st_mtime_ns

    def _lock_path(self, name: str, kind: str) -> Path:
        return self.folder / "locks" / f"{_flat(name)}.{kind}"

    def _lock(self, name: str, kind: str, mode: int) -> IO[bytes]:
        path = self._lock_path(name, kind)
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
        try:
            fcntl.flock(file, mode)
        except BaseException:
            file.close()
            raise
        return file

    @contextmanager
    def _held(self, name: str, kind: str, flags: int = 0) -> Iterator[None]:
        file = self._lock(name, kind, fcntl.LOCK_EX | flags)
        try:
            yield
        finally:
            file.close()


def _flat(name: str) -> str:
    return name.replace("/", "%")


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:  # another process works there
            continue
    return total
