"""Arrays on disk that are filled through memory maps."""

from __future__ import annotations

import errno
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.format import open_memmap

from peg_core.atomic_file import note_written
from peg_core.errors import DiskFull

FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


def new_mapped_array(
    path: Path, shape: tuple[int, ...], dtype: npt.DTypeLike
) -> np.memmap[Any, Any]:
    """A new ``.npy`` file of zeros to write into, with its space on the disk set aside.

    Writing to a mapped page for which the disk has no room kills the process without a word.

    Raises:
        DiskFull: There is no room; the file is gone again.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        array = open_memmap(str(path), "w+", dtype=np.dtype(dtype), shape=shape)
        _set_aside(Path(str(path)))
    except OSError as error:
        if error.errno not in FULL:
            raise
        path.unlink(missing_ok=True)
        raise DiskFull.of(path, size=size, reason=error.strerror) from error
    note_written(path)
    return array


def _set_aside(path: Path) -> None:
    """Give a file of holes its blocks, where the file system can."""
    if not hasattr(os, "posix_fallocate"):
        return
    with path.open("r+b") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
        except OSError as error:
            if error.errno in FULL:
                raise
