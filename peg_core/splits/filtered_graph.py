"""A part of a graph, written as memory-mapped files without holding it in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import GraphStore
from peg_core.mapped_array import new_mapped_array
from peg_core.splits.entry_chunk import entry_ranges

Mask = npt.NDArray[np.bool_]

# Entries copied at a time.
CHUNK = 2**22


@dataclass(frozen=True)
class KeptRows:
    """What is kept of some consecutive entries of a graph, and where it goes.

    Args:
        first_row: The first row that begins among these entries.
        indptr: Of the rows that begin there, [rows]; with the last entries also the end.
        columns: By the name of the array, [kept].
    """

    first_row: int
    indptr: npt.NDArray[np.int64]
    columns: dict[str, npt.NDArray[Any]]


def kept_rows(graph: GraphStore, span: slice, keep: Mask, first: int) -> KeptRows:
    """Take some entries of a graph.

    Args:
        graph: The whole.
        span: Which entries are looked at.
        keep: Which of them are kept, [entries of the span].
        first: Entries that are kept before these.
    """
    begin = int(np.searchsorted(graph.indptr, span.start, side="left"))
    end = int(np.searchsorted(graph.indptr, span.stop, side="left"))
    if span.stop == len(graph.indices):  # the end, and rows without an entry before it
        end = len(graph.indptr)
    # rows that begin here: what is kept before their first entry
    before = np.empty(len(keep) + 1, dtype=np.int64)
    before[0] = first
    np.cumsum(keep, out=before[1:])
    before[1:] += first
    arrays = {"indices": graph.indices, "weights": graph.weights}
    columns = {name: array[span][keep] for name, array in arrays.items() if array is not None}
    return KeptRows(begin, before[graph.indptr[begin:end] - span.start], columns)


def write_filtered(graph: GraphStore, keep: Callable[[slice], Mask], folder: Path) -> None:
    """Write the entries that are kept; of an edge both or none must be.

    Args:
        graph: The whole.
        keep: Which of some consecutive entries are kept; asked twice.
        folder: Gets the arrays of a :class:`GraphStore`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    spans = entry_ranges(len(graph.indices), CHUNK)
    total = sum(int(np.count_nonzero(keep(span))) for span in spans)
    outs = {"indptr": new_mapped_array(folder / "indptr.npy", graph.indptr.shape, np.int64)}
    for name, array in (("indices", graph.indices), ("weights", graph.weights)):
        if array is not None:
            outs[name] = new_mapped_array(folder / f"{name}.npy", (total,), array.dtype)
    written = 0
    for span in spans:
        kept = kept_rows(graph, span, keep(span), written)
        outs["indptr"][kept.first_row : kept.first_row + len(kept.indptr)] = kept.indptr
        for name, values in kept.columns.items():
            outs[name][written : written + len(values)] = values
        written += len(kept.columns["indices"])
    for out in outs.values():
        out.flush()
