"""Whether the files of an artifact are still what was written: their sizes and contents."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from peg_core.errors import PegError
from peg_core.storage.file_record import FileRecord, file_digest

# A disk is shared with the run itself: few readers.
READERS = 4
SHOWN = 3


class DamagedArtifact(PegError):
    """Files of a finished artifact are not what was written."""

    @classmethod
    def of(cls, artifact: object, damage: str, remedy: str) -> Self:
        return cls(f"{artifact} is damaged: {damage}; {remedy}")


def record_files(folder: Path, *, without: Collection[str] = ()) -> dict[str, FileRecord]:
    """Every file of an artifact, by its name below ``folder``; hidden ones do not belong to it."""
    names = [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    ]
    chosen = [name for name in names if name not in without]
    sums = _each(lambda name: file_digest(folder / name), chosen)
    return {
        name: FileRecord((folder / name).stat().st_size, found)
        for name, found in zip(chosen, sums, strict=True)
    }


def size_damage(sizes: Mapping[str, int], files: Mapping[str, FileRecord]) -> str | None:
    """What is missing or of another size, in words; None: nothing."""
    wrong = [name for name, record in files.items() if sizes.get(name) != record.bytes]
    return _told([
        f"{name} has {sizes[name]:,} bytes, {files[name].bytes:,} were written"
        if name in sizes
        else f"{name} is missing"
        for name in wrong
    ])  # fmt: skip


def content_damage(files: Mapping[str, FileRecord], digest_of: Callable[[str], str]) -> str | None:
    """Which files have other contents than were written, in words; None: none."""
    known = {name: record.xxh3 for name, record in files.items() if record.xxh3 is not None}
    found = _each(digest_of, list(known))
    wrong = [name for name, now in zip(known, found, strict=True) if now != known[name]]
    return _told([f"{name} does not have the contents that were written" for name in wrong])


def folder_damage(folder: Path, files: Mapping[str, FileRecord], *, contents: bool) -> str | None:
    """What is wrong with the files of a folder, in words; None: nothing."""
    sizes = {name: path.stat().st_size for name in files if (path := folder / name).is_file()}
    damage = size_damage(sizes, files)
    if damage is None and contents:
        damage = content_damage(files, lambda name: file_digest(folder / name))
    return damage


def _each(act: Callable[[str], str], names: list[str]) -> list[str]:
    with ThreadPoolExecutor(READERS) as pool:
        return list(pool.map(act, names))


def _told(problems: list[str]) -> str | None:
    if not problems:
        return None
    more = f", and {len(problems) - SHOWN:,} more files" if len(problems) > SHOWN else ""
    return ", ".join(problems[:SHOWN]) + more
