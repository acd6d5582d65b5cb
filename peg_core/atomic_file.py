"""Files that are there whole or not at all, and what a task has written of them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_records: list[set[Path]] = []


@contextmanager
def written_files() -> Iterator[set[Path]]:
    """The files that this process writes while the block runs, filled as they appear."""
    written: set[Path] = set()
    _records.append(written)
    try:
        yield written
    finally:
        _records[:] = [record for record in _records if record is not written]


def note_written(path: Path) -> None:
    """Tell of a file that was written by other means than those below; hidden ones do not count."""
    if not path.name.startswith("."):
        for record in _records:
            record.add(path)


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary name to write to; renamed to ``path`` when the block ends well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        # as text: a path of an object store would first bring what the name had before
        os.replace(str(temporary), str(path))
        note_written(path)
    finally:
        Path(str(temporary)).unlink(missing_ok=True)


def copy_file(source: Path, target: Path) -> None:
    """Copy a file; the copy appears when it is whole."""
    with atomic_path(target) as temporary:
        shutil.copyfile(source, temporary)


def remove_leftovers(folder: Path) -> None:
    """Remove what writers that were killed left below a folder that nobody writes to."""
    for temporary in folder.rglob(".*.tmp"):
        temporary.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Write JSON, flushed to disk before it appears under its name."""
    with atomic_path(path) as temporary, temporary.open("w") as file:
        json.dump(value, file, indent=2)
        file.flush()
        os.fsync(file.fileno())


def write_array(path: Path, array: npt.NDArray[Any]) -> None:
    """Write a ``.npy`` file."""
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.save(file, array)
