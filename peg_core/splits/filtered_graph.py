"""A graph less some of its links, written as memory-mapped files or in memory.

An entry goes with its link, unless a context relation has it too: then it stays, without the
predicted relation and with the weight that it has in the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import OPTIONAL, GraphStore
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


def staying_entries(graph: GraphStore, span: slice, keep: Mask) -> Mask:
    """Which of some entries stay where the links of ``keep`` do, [entries of the span]."""
    if graph.codes is None or graph.relations is None:
        return keep
    others: Mask = np.asarray(graph.codes[span]) & ~graph.relations.link_mask != 0
    return keep | others


def kept_rows(graph: GraphStore, span: slice, keep: Mask, first: int) -> KeptRows:
    """Take some entries of a graph.

    Args:
        graph: The whole.
        span: Which entries are looked at.
        keep: Which of their links are kept, [entries of the span].
        first: Entries that stay before these.
    """
    stays = staying_entries(graph, span, keep)
    begin = int(np.searchsorted(graph.indptr, span.start, side="left"))
    end = int(np.searchsorted(graph.indptr, span.stop, side="left"))
    if span.stop == len(graph.indices):  # the end, and rows without an entry before it
        end = len(graph.indptr)
    # rows that begin here: what is kept before their first entry
    before = np.empty(len(keep) + 1, dtype=np.int64)
    before[0] = first
    np.cumsum(stays, out=before[1:])
    before[1:] += first
    arrays = _arrays(graph)
    columns = {name: array[span][stays] for name, array in arrays.items()}
    if graph.codes is not None and graph.relations is not None:
        mask, gone = graph.relations.link_mask, ~keep[stays]
        gone &= columns["codes"] & mask != 0
        columns["codes"] = np.where(gone, columns["codes"] & ~mask, columns["codes"])
        if graph.weights is not None and graph.context_weights is not None:
            context = columns["context_weights"]
            columns["weights"] = np.where(gone, context, columns["weights"])
    return KeptRows(begin, before[graph.indptr[begin:end] - span.start], columns)


def without_links(graph: GraphStore, keep: Mask) -> GraphStore:
    """The graph with the links of the entries in ``keep`` [2 * num_edges], in memory."""
    kept = kept_rows(graph, slice(0, len(graph.indices)), keep, 0)
    return GraphStore(kept.indptr, **kept.columns, relations=graph.relations)


def write_filtered(graph: GraphStore, keep: Callable[[slice], Mask], folder: Path) -> None:
    """Write the graph with the links that are kept; of an edge both entries or none must be.

    Args:
        graph: The whole.
        keep: Which links of some consecutive entries are kept; asked twice.
        folder: Gets the arrays of a :class:`GraphStore`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    spans = entry_ranges(len(graph.indices), CHUNK)
    total = sum(int(np.count_nonzero(staying_entries(graph, s, keep(s)))) for s in spans)
    outs = {"indptr": new_mapped_array(folder / "indptr.npy", graph.indptr.shape, np.int64)}
    for name, array in _arrays(graph).items():
        outs[name] = new_mapped_array(folder / f"{name}.npy", (total,), array.dtype)
    if graph.relations is not None:
        graph.relations.save(folder)
    written = 0
    for span in spans:
        kept = kept_rows(graph, span, keep(span), written)
        outs["indptr"][kept.first_row : kept.first_row + len(kept.indptr)] = kept.indptr
        for name, values in kept.columns.items():
            outs[name][written : written + len(values)] = values
        written += len(kept.columns["indices"])
    for out in outs.values():
        out.flush()


def _arrays(graph: GraphStore) -> dict[str, npt.NDArray[Any]]:
    """The arrays of entries that a graph has, by name."""
    found = {name: getattr(graph, name) for name in ("indices", *OPTIONAL)}
    return {name: array for name, array in found.items() if array is not None}
