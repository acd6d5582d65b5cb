"""A part of a graph, written as memory-mapped files without holding it in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.format import open_memmap

from peg_core.graph.graph_store import GraphStore

# Entries copied at a time.
CHUNK = 2**22


def write_filtered(
    graph: GraphStore, keep: Callable[[slice], npt.NDArray[np.bool_]], folder: Path
) -> None:
    """Write the entries that are kept; of an edge both or none must be.

    Args:
        graph: The whole.
        keep: Which of some consecutive entries are kept; asked twice.
        folder: Gets the arrays of a :class:`GraphStore`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    places = [slice(i, i + CHUNK) for i in range(0, len(graph.indices), CHUNK)]
    total = sum(int(np.count_nonzero(keep(part))) for part in places)
    indptr = open_memmap(folder / "indptr.npy", "w+", dtype=np.int64, shape=graph.indptr.shape)
    columns: list[tuple[npt.NDArray[Any], np.memmap[Any, Any]]] = []
    for name, array in (("indices", graph.indices), ("weights", graph.weights)):
        if array is not None:
            out = open_memmap(folder / f"{name}.npy", "w+", dtype=array.dtype, shape=(total,))
            columns.append((array, out))
    place = row = 0
    for part in places:
        kept = keep(part)
        count = int(np.count_nonzero(kept))
        for values, out in columns:
            out[place : place + count] = values[part][kept]
        # rows that begin in this chunk: what was kept before their first entry
        stop = min(part.stop, len(graph.indices))
        last = int(np.searchsorted(graph.indptr, stop, side="left"))
        before = np.concatenate([[0], np.cumsum(kept)])
        indptr[row:last] = place + before[graph.indptr[row:last] - part.start]
        place, row = place + count, last
    indptr[row:] = place
    for flushed in (indptr, *(out for _, out in columns)):
        flushed.flush()
