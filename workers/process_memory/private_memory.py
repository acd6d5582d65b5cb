"""Memory that a task holds for itself: pages of mapped files are the page cache's."""

from __future__ import annotations

import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STATUS = Path("/proc/self/status")
SAMPLE_SECONDS = 0.05


class PrivateMemory:
    """The most private memory that this process was seen to hold.

    The kernel keeps a high-water mark of all pages alone, so this one is sampled.
    """

    def __init__(self) -> None:
        self.peak_bytes = 0

    def sample(self) -> None:
        self.peak_bytes = max(self.peak_bytes, private_bytes())


@contextmanager
def watched_memory() -> Iterator[PrivateMemory]:
    """Watch this process while the block runs."""
    memory, ended = PrivateMemory(), threading.Event()

    def watch() -> None:
        while not ended.wait(SAMPLE_SECONDS):
            memory.sample()

    memory.sample()
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield memory
    finally:
        ended.set()
        thread.join()
        memory.sample()


def private_bytes() -> int:
    """Private memory of this process now; all of its memory where the system does not tell."""
    try:
        status = STATUS.read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    line = next(line for line in status.splitlines() if line.startswith("RssAnon:"))
    return int(line.split()[1]) * 1024
