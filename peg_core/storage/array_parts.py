"""Large arrays that many tasks fill: one file where all see it, parts with offsets elsewhere.

On an object store nobody can write into the middle of a file. There every task leaves its
rows as a part, named by its first row; whoever reads the array makes one file of all parts.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from peg_core.atomic_file import atomic_path, write_array, write_json
from peg_core.mapped_array import new_mapped_array
from peg_core.storage.file_record import CHUNK_BYTES, FileRecord

PARTS = ".parts"
DESCRIPTION = "array.json"


def whole_name(name: str) -> str:
    """The name of the array that a part belongs to; other names stay as they are."""
    head, parts, _ = name.partition(f"{PARTS}/")
    return head if parts else name


def describe_array(folder: Path, shape: tuple[int, ...], kind: npt.DTypeLike) -> Path:
    """Say what the parts in ``folder`` will make; returns the file that says so."""
    write_json(folder / DESCRIPTION, {"shape": list(shape), "dtype": np.dtype(kind).str})
    return folder / DESCRIPTION


def described_dtype(folder: Path) -> np.dtype[Any]:
    """The type of the array that the parts in ``folder`` will make."""
    return np.dtype(json.loads((folder / DESCRIPTION).read_text())["dtype"])


def write_part(folder: Path, first: int, values: npt.NDArray[Any]) -> None:
    """Leave rows from ``first`` on."""
    write_array(folder / f"{first:015}-{len(values)}.npy", np.ascontiguousarray(values))


def assemble(folder: Path, target: Path) -> None:
    """Make one ``.npy`` file of all parts in ``folder``."""
    described = json.loads((folder / DESCRIPTION).read_text())
    shape, kind = tuple(described["shape"]), np.dtype(described["dtype"])
    with atomic_path(target) as temporary:
        if 0 in shape:  # cannot be mapped
            with temporary.open("wb") as file:
                np.save(file, np.zeros(shape, dtype=kind))
            return
        whole = new_mapped_array(temporary, shape, kind)
        for part in sorted(folder.glob("*.npy")):
            whole[_rows(part.name)] = np.load(part, mmap_mode="r")
        whole.flush()


def parts_match(target: Path, described: Any, records: Mapping[str, FileRecord]) -> bool:
    """Whether a file is what the parts make, by their checksums.

    Args:
        records: Of the parts, by their names.
    """
    if not target.exists() or described is None or 0 in described["shape"]:
        return False
    try:
        whole = np.load(target, mmap_mode="r")
    except (OSError, ValueError):
        return False
    if list(whole.shape) != described["shape"] or whole.dtype.str != described["dtype"]:
        return False
    return all(
        _part_digest(whole[_rows(name)]) == record.xxh3
        for name, record in records.items()
        if name != DESCRIPTION
    )


def _rows(part: str) -> slice:
    """The rows that a part holds, by its name."""
    first, count = part.removesuffix(".npy").split("-")
    return slice(int(first), int(first) + int(count))


def _part_digest(rows: npt.NDArray[Any]) -> str:
    """The checksum that a part with these rows has as a file."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, np.lib.format.header_data_from_array_1_0(rows))
    state = xxhash.xxh3_128(head.getvalue())
    step = max(1, CHUNK_BYTES // max(rows[:1].nbytes, 1))
    for first in range(0, len(rows), step):
        state.update(np.ascontiguousarray(rows[first : first + step]).data)
    return state.hexdigest()
