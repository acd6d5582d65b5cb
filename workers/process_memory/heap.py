"""What the process does with memory that was given back."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Numbers of glibc's mallopt.
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
# The largest that mallopt takes.
LARGEST = 2**31 - 1
# Where glibc's own thresholds stand once a process has freed large arrays; they do not move by
# themselves any more after a call of mallopt.
USUAL_MMAP, USUAL_TRIM = 2**25, 2**26


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Serve large arrays from memory freed before, up to 2 GB of it.

    Every step of a training asks for the same few hundred megabytes. glibc would take them
    from the system and give them back each time, and the system hands out zeroed pages one
    fault at a time: half of a step. Where there is no glibc nothing changes.
    """
    library = _glibc()
    if library is None:
        yield
        return
    library.mallopt(MMAP_THRESHOLD, LARGEST)
    library.mallopt(TRIM_THRESHOLD, LARGEST)
    try:
        yield
    finally:
        library.mallopt(MMAP_THRESHOLD, USUAL_MMAP)
        library.mallopt(TRIM_THRESHOLD, USUAL_TRIM)
        library.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None
