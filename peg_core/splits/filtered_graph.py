"""A part of a graph, written as memory-mapped files without holding it in memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import GraphStore
from peg_core.mapped_array import new_mapped_array

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
    indptr = new_mapped_array(folder / "indptr.npy", graph.indptr.shape, np.int64)
    columns: list[tuple[npt.NDArray[Any], np.memmap[Any, Any]]] = []
    for name, array in (("indices", graph.indices), ("weights", graph.weights)):
        if array is not None:
            out = new_mapped_array(folder / f"{name}.npy", (total,), array.dtype)
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
