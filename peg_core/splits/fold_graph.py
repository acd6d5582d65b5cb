"""A training graph less one fold, as memory-mapped files."""

from __future__ import annotations

import os
import shutil
import uuid
from pathlib import Path

from peg_core.graph.graph_store import GraphStore
from peg_core.splits.filtered_graph import write_filtered
from peg_core.splits.split_store import NO_FOLD, SplitStore

# A training graph with more entries is not held in memory without a fold. Fixed: what is encoded
# does not depend on the cluster.
MOST_HELD_ENTRIES = 2**24


def write_fold_graph(split: SplitStore, fold: int, folder: Path) -> None:
    """Write the training graph less a fold; memory does not grow with the edges."""
    folds = split.entry_folds()
    write_filtered(split.train_graph(), lambda part: folds[part] != fold, folder)


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
        write_fold_graph(split, fold, temporary)
        try:
            os.rename(temporary, folder)
        except OSError:  # another process was first
            shutil.rmtree(temporary)
    return GraphStore.open(folder)
