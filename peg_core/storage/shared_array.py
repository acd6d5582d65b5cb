"""Arrays that many tasks fill, in a folder or in an object store."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.atomic_file import atomic_path, note_written
from peg_core.mapped_array import new_mapped_array
from peg_core.storage.array_parts import (
    DESCRIPTION,
    PARTS,
    describe_array,
    described_dtype,
    write_part,
)
from peg_core.storage.stored_path import StoredPath, is_there, publish, read_bytes

Array = npt.NDArray[Any]
HEADER_BYTES = 4096  # more than the head of any array that we write


def create_array(file: Path, shape: tuple[int, ...], kind: npt.DTypeLike) -> None:
    """An array of zeros for tasks to write their rows into; nothing where there is one."""
    if isinstance(file, StoredPath):
        publish([describe_array(_parts(file), shape, kind)])
        return
    if file.exists():
        return
    with atomic_path(file) as temporary:
        if 0 in shape:  # cannot be mapped
            with temporary.open("wb") as out:
                np.save(out, np.zeros(shape, dtype=kind))
        else:
            new_mapped_array(temporary, shape, kind)


def write_rows(file: Path, first: int, values: Array) -> None:
    """Write rows from ``first`` on; doing it twice changes nothing.

    No shared mapping: two machines may write to the same page.
    """
    if len(values) == 0:
        return
    if isinstance(file, StoredPath):
        write_part(_parts(file), first, values.astype(described_dtype(_parts(file)), copy=False))
        return
    whole = np.load(file, mmap_mode="r")
    own = np.ascontiguousarray(values, dtype=whole.dtype)
    with file.open("r+b") as out:
        out.seek(whole.offset + first * (own.nbytes // len(own)))
        out.write(own.data)
    note_written(file)


def array_shape(file: Path) -> tuple[int, ...]:
    """The shape of an ``.npy`` file; of its contents nothing is brought to this machine."""
    if isinstance(file, StoredPath) and not Path(str(file)).exists():
        if is_there(_parts(file) / DESCRIPTION):
            return tuple(json.loads((_parts(file) / DESCRIPTION).read_text())["shape"])
        return _head(file)[0]
    shape: tuple[int, ...] = np.load(file, mmap_mode="r").shape
    return shape


def read_rows(file: Path, start: int, stop: int | None) -> Array:
    """Some rows of an ``.npy`` file: of one that is not on this machine no others are brought."""
    whole = not isinstance(file, StoredPath) or Path(str(file)).exists()
    if whole or is_there(_parts(file) / DESCRIPTION):
        rows: Array = np.load(file, mmap_mode="r")[start:stop]
        return rows
    shape, kind, offset = _head(file)
    first, last, _ = slice(start, stop).indices(shape[0])
    count = max(last - first, 0)
    row = math.prod(shape[1:]) * kind.itemsize
    data = read_bytes(file, offset + first * row, count * row) if count else b""
    return np.frombuffer(data, dtype=kind).reshape(count, *shape[1:])


def _head(file: Path) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Shape, type and the first byte of the values of a file that is not on this machine."""
    head = io.BytesIO(read_bytes(file, 0, HEADER_BYTES))
    np.lib.format.read_magic(head)
    shape, _, kind = np.lib.format.read_array_header_1_0(head)
    return shape, kind, head.tell()


def _parts(file: Path) -> Path:
    return file.with_name(file.name + PARTS)
