"""An artifact of an object store on this machine: files come when they are opened."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

from peg_core.errors import PegError
from peg_core.storage.array_parts import DESCRIPTION, PARTS, assemble, parts_match, whole_name
from peg_core.storage.file_record import MANIFEST_NAME, FileRecord
from peg_core.storage.node_cache import NodeCache, cache_folder, cache_limit
from peg_core.storage.object_storage import Storage, in_parallel

# Names the attempt at an artifact: whoever goes on with it finds what it has finished.
ATTEMPT_NAME = "attempt.json"
VERIFIED = ".verified"  # a folder of notes: which files were compared with the manifest


class DamagedFile(PegError):
    """A file in an object store is not what was written."""

    @classmethod
    def of(cls, location: str) -> DamagedFile:
        return cls(
            f"{location} is damaged: it does not have the size or the contents that were "
            "written; `peg verify` looks at the whole store, `peg run --force STAGE` makes the "
            "artifact again"
        )


@dataclass(frozen=True)
class Attempt:
    """One attempt to make an artifact; small, and the same on every machine.

    Args:
        store: URL of the store.
        name: ``<stage>/<fingerprint>``.
        token: Tells it from earlier attempts, whose files caches may still hold.
        finished: Whether its manifest is there.
        run: Who reads; a machine compares contents once in a run.
    """

    store: str
    name: str
    token: str
    finished: bool
    run: str

    @classmethod
    def of(cls, storage: Storage, name: str, *, finished: bool, run: str) -> Self:
        """The last attempt at an artifact; one that is older than attempts has no token."""
        noted = storage.read_json(f"{name}/{ATTEMPT_NAME}") or {}
        return cls(storage.location(), name, str(noted.get("token", "first")), finished, run)


class Mirror:
    """The files of an attempt, brought here one by one.

    What a process of this machine writes lies here first, and goes to the store by
    :meth:`publish`. Nothing is brought that nobody opens.
    """

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self.storage = Storage(attempt.store)
        self.cache = cache_of(attempt.store)
        self._entry = f"{attempt.name}/{attempt.token}"
        self.root = self.cache.path(self._entry)
        self._records: dict[str, FileRecord] | None = None
        self.fetched_bytes = 0

    def bring(self, name: str) -> None:
        """Let a file be here if there is one; ``name`` may also be a folder, or nothing at all."""
        self.cache.use(self._entry)
        local = self.root / name
        if self.attempt.finished:
            self._bring_finished(name, local)
        elif not local.exists():
            with self.cache.filling(self._entry, name):
                if not local.exists():
                    self._bring_unfinished(name, local)

    def bring_latest(self, name: str) -> None:
        """Let the newest version of a file be here that was published by any machine."""
        self.cache.use(self._entry)
        with self.cache.filling(self._entry, name):
            if self.storage.file_size(self._stored(name)) is not None:
                self._download(name, self.root / name)

    def holds(self, name: str) -> bool:
        """Whether the store has a file, whole or in parts."""
        names = (name, f"{name}{PARTS}/{DESCRIPTION}")
        if self.attempt.finished:
            return any(stored in self.records for stored in names)
        return any(self.storage.file_size(self._stored(stored)) is not None for stored in names)

    def open_input(self, name: str) -> Any:
        """A file that is not here, to read pieces of."""
        return self.storage.open_input(self._stored(name))

    def read_range(self, name: str, start: int, length: int) -> bytes:
        """Some bytes of a file that is not here."""
        self.fetched_bytes += length
        return self.storage.read_range(self._stored(name), start, length)

    def publish(self, names: Iterable[str]) -> dict[str, FileRecord]:
        """Copy files that were written here to the store; tells what was copied."""
        there = [name for name in names if (self.root / name).is_file()]
        records = {name: FileRecord.of_file(self.root / name) for name in there}
        in_parallel(lambda n: self.storage.upload_file(self.root / n, self._stored(n)), there)
        return records

    def remove(self, name: str) -> None:
        """Remove a file, the parts of an array, or a folder, here and in the store."""
        local = self.root / name
        for path in (local, local.with_name(local.name + PARTS)):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
        for stored in (name, name + PARTS):
            self.storage.delete(self._stored(stored))

    def drop_unpublished(self) -> None:
        """Forget what a killed process wrote here and did not bring to the store.

        Nobody else would ever see it, and whoever finds it here would not write it again.
        """
        skip = len(self.attempt.name) + 1
        stored = {file.name[skip:] for file in self.storage.files(self.attempt.name)}
        known = stored | {whole_name(name) for name in stored}
        for path in sorted(self.root.rglob("*")):
            name = str(path.relative_to(self.root))
            if path.is_file() and not name.startswith(VERIFIED) and name not in known:
                path.unlink(missing_ok=True)

    def names(self, folder: str) -> list[str]:
        """Files below a folder, here or in the store; the parts of an array count as the array."""
        if self.attempt.finished:
            known = set(self.records)
        else:
            skip = len(self.attempt.name) + 1
            known = {f.name[skip:] for f in self.storage.files(self._stored(folder))}
            known |= {
                str(path.relative_to(self.root))
                for path in (self.root / folder).rglob("*")
                if path.is_file()
            }
        prefix = f"{folder}/" if folder not in ("", ".") else ""
        return sorted({whole_name(name) for name in known if name.startswith(prefix)})

    @property
    def records(self) -> dict[str, FileRecord]:
        """The files of a finished artifact, as its manifest names them."""
        if self._records is None:
            name = self._stored(MANIFEST_NAME)
            manifest = self.storage.read_json(name)
            if manifest is None:
                raise PegError(
                    f"{self.storage.location(name)} is gone: the artifact was removed while it "
                    "was needed; run again"
                )
            self._records = {n: FileRecord.of(v) for n, v in manifest["files"].items()}
        return self._records

    def release(self) -> None:
        """Nobody here works with it for now: it may be evicted."""
        self.cache.close()
        if self.fetched_bytes:
            self.fetched_bytes = 0
            self.cache.evict()

    def _bring_finished(self, name: str, local: Path) -> None:
        if name == MANIFEST_NAME:
            if not self._is_verified(name, local):
                self.bring_latest(name)
                self._verify(name)
            return
        is_array = f"{name}{PARTS}/{DESCRIPTION}" in self.records
        if not (is_array or name in self.records) or self._is_verified(name, local):
            return
        with self.cache.filling(self._entry, name):
            if self._is_verified(name, local):
                return
            if is_array:
                self._bring_array(name, local)
            elif not self.records[name].matches(local):
                self._download(name, local, self.records[name])
            self._verify(name)

    def _bring_array(self, name: str, local: Path) -> None:
        """An array that was written in parts, as one file."""
        folder = f"{name}{PARTS}/"
        parts = {n: record for n, record in self.records.items() if n.startswith(folder)}
        described = self.storage.read_json(self._stored(f"{folder}{DESCRIPTION}"))
        sums = {Path(n).name: record for n, record in parts.items()}
        if not parts_match(local, described, sums):
            self._assemble(local, list(parts), parts)

    def _bring_unfinished(self, name: str, local: Path) -> None:
        if self.storage.file_size(self._stored(name)) is not None:
            self._download(name, local)
            return
        skip = len(self.attempt.name) + 1
        parts = [f.name[skip:] for f in self.storage.files(self._stored(name + PARTS))]
        if parts:
            self._assemble(local, parts, {})

    def _assemble(self, local: Path, parts: list[str], records: dict[str, FileRecord]) -> None:
        """Bring the parts of an array, and make one file of them."""

        def fetch(part: str) -> None:
            path, record = self.root / part, records.get(part)
            if not path.exists() or (record is not None and not record.matches(path)):
                self._download(part, path, record)

        in_parallel(fetch, parts)
        assemble(local.with_name(local.name + PARTS), local)
        shutil.rmtree(local.with_name(local.name + PARTS), ignore_errors=True)

    def _download(self, name: str, local: Path, record: FileRecord | None = None) -> None:
        self.storage.download_file(self._stored(name), local)
        self.fetched_bytes += local.stat().st_size
        if record is not None and not record.matches(local):
            local.unlink()
            raise DamagedFile.of(self.storage.location(self._stored(name)))

    def _is_verified(self, name: str, local: Path) -> bool:
        return local.exists() and self._note(name).exists()

    def _verify(self, name: str) -> None:
        note = self._note(name)
        note.parent.mkdir(parents=True, exist_ok=True)
        note.touch()

    def _note(self, name: str) -> Path:
        return self.root / VERIFIED / self.attempt.run / name

    def _stored(self, name: str) -> str:
        return f"{self.attempt.name}/{name}" if name not in ("", ".") else self.attempt.name


def cache_of(store: str) -> NodeCache:
    """This machine's cache of a store."""
    return _cache_of(store, cache_folder(), cache_limit())


@lru_cache(maxsize=16)
def _cache_of(store: str, folder: Path, limit: int) -> NodeCache:
    key = hashlib.sha256(store.encode()).hexdigest()[:16]
    return NodeCache(folder / key, limit)
