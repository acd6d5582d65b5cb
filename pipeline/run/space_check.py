"""Free disk against what the inputs say will be written at least."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from peg_core.errors import DiskFull
from peg_core.object_url import is_url
from peg_core.storage.node_cache import cache_folder
from pipeline.run.input_check import CheckedTable

# Two entries of 4 bytes in the graph and in the training graph, a link, its part and fold: 28
# bytes an edge, which a table may name in both directions.
BYTES_PER_EDGE_ROW = 14
# What is left of a float32 that was packed.
BYTES_PER_SCORE = 3


def require_space(store: str, tables: Iterable[CheckedTable]) -> None:
    """Refuse a run whose graph and scores alone are larger than what is free.

    Args:
        store: A folder, or a URL: then artifacts are made in this machine's cache.
        tables: What the stages that run read.

    Raises:
        DiskFull: Says what is free and what is needed.
    """
    needed = least_bytes(tables)
    folder = cache_folder() if is_url(store) else Path(store).absolute()
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    if free < needed:
        raise DiskFull.to_be(folder, free=free, needed=needed)


def least_bytes(tables: Iterable[CheckedTable]) -> int:
    """What graph and scores take at least; encodings and models come on top of it."""
    needed = 0
    for checked in tables:
        if checked.table.edges is not None:
            needed += BYTES_PER_EDGE_ROW * checked.rows
        elif checked.table.added:
            needed += checked.bytes + BYTES_PER_SCORE * checked.rows
    return needed
