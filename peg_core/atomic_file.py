"""Files that are there whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary name to write to; renamed to ``path`` when the block ends well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


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
