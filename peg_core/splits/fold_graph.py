"""A training graph less one fold, as memory-mapped files."""

from __future__ import annotations

import os
import shutil
import uuid
from pathlib import Path

import numpy as np
from numpy.lib.format import open_memmap

from peg_core.graph.graph_store import GraphStore
from peg_core.splits.split_store import NO_FOLD, SplitStore

# Entries copied at a time.
CHUNK = 2**22


def open_fold_graph(split: SplitStore, fold: int, scratch: Path) -> GraphStore:
    """The training graph less a fold, written to ``scratch`` the first time.

    Memory does not grow with the edges; several processes may ask at once.
    """
    if fold == NO_FOLD:
        return split.train_graph()
    folder = scratch / f"without-fold-{fold}"
    if not folder.exists():
        temporary = scratch / f".{folder.name}-{uuid.uuid4().hex}"
        temporary.mkdir(parents=True)
        _write(split, fold, temporary)
        try:
            os.rename(temporary, folder)
        except OSError:  # another process was first
            shutil.rmtree(temporary)
    return GraphStore.open(folder)


def _write(split: SplitStore, fold: int, folder: Path) -> None:
    graph, folds = split.train_graph(), split.entry_folds()
    num_entries = len(graph.indices)
    kept = np.zeros(-(-num_entries // CHUNK) + 1, dtype=np.int64)
    for number, first in enumerate(range(0, num_entries, CHUNK)):
        kept[number + 1] = np.count_nonzero(folds[first : first + CHUNK] != fold)
    total = int(kept.sum())
    indptr = open_memmap(folder / "indptr.npy", "w+", dtype=np.int64, shape=graph.indptr.shape)
    indices = open_memmap(folder / "indices.npy", "w+", dtype=graph.indices.dtype, shape=(total,))
    weights = None
    if graph.weights is not None:
        weights = open_memmap(
            folder / "weights.npy", "w+", dtype=graph.weights.dtype, shape=(total,)
        )
    place = row = 0
    for first in range(0, num_entries, CHUNK):
        part = slice(first, first + CHUNK)
        keep = folds[part] != fold
        count = int(np.count_nonzero(keep))
        indices[place : place + count] = graph.indices[part][keep]
        if weights is not None and graph.weights is not None:
            weights[place : place + count] = graph.weights[part][keep]
        # rows that begin in this chunk: what was kept before their first entry
        last = int(np.searchsorted(graph.indptr, min(first + CHUNK, num_entries), side="left"))
        before = np.concatenate([[0], np.cumsum(keep)])
        indptr[row:last] = place + before[graph.indptr[row:last] - first]
        place, row = place + count, last
    indptr[row:] = place
    for array in (indptr, indices, weights):
        if array is not None:
            array.flush()
