"""A split on disk: the training graph, its folds, and the labelled held-out pairs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from peg_core.atomic_file import atomic_path, write_array
from peg_core.errors import PegError
from peg_core.graph.graph_store import GraphStore
from peg_core.splits.edge_split import TRAIN, assign_folds

IntArray = npt.NDArray[np.integer[Any]]

# Entries of the training graph carry the fold of their edge; this is no fold.
NO_FOLD = -1


@dataclass(frozen=True)
class LabelledPairs:
    """Pairs to rank: links first, then non-links.

    Args:
        source, target: [num_pairs] node indices.
        label: [num_pairs] 1 for a link, 0 for none.
    """

    source: npt.NDArray[np.int64]
    target: npt.NDArray[np.int64]
    label: npt.NDArray[np.uint8]

    @property
    def links(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        chosen = self.label == 1
        return self.source[chosen], self.target[chosen]

    def by_label(self, scores: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Scores of the links and of the non-links."""
        return scores[self.label == 1], scores[self.label == 0]


@dataclass(frozen=True)
class SplitStore:
    """Opens what the split wrote; gives the training graph with or without a fold."""

    folder: Path

    def train_graph(self) -> GraphStore:
        return GraphStore.open(self.folder / "train_graph")

    def entry_folds(self) -> npt.NDArray[np.uint8]:
        """The fold of every entry of the training graph, [2 * num_edges]."""
        folds: npt.NDArray[np.uint8] = np.load(self.folder / "entry_folds.npy", mmap_mode="r")
        return folds

    def graph_without(self, fold: int) -> GraphStore:
        """The training graph less one fold; the whole of it for ``NO_FOLD``."""
        graph = self.train_graph()
        return graph if fold == NO_FOLD else graph.filter_entries(self.entry_folds() != fold)

    def train_links(self) -> tuple[IntArray, IntArray, npt.NDArray[np.uint8]]:
        """Source, target and fold of every training link."""
        graph = self.train_graph()
        source, target = graph.edges()
        rows = np.repeat(np.arange(graph.num_nodes, dtype=graph.indices.dtype), graph.degrees)
        return source, target, self.entry_folds()[rows < graph.indices]

    def held_out(self, part: str) -> LabelledPairs:
        """The pairs of ``valid`` or ``test``."""
        table = pl.read_parquet(self.folder / f"{part}.parquet")
        return LabelledPairs(*(table[name].to_numpy() for name in ("source", "target", "label")))

    def held_out_links(self) -> dict[str, tuple[IntArray, IntArray]]:
        """The links that nothing may learn from, by part."""
        return {part: self.held_out(part).links for part in ("valid", "test")}

    def write_train(
        self,
        graph: GraphStore,
        entry_parts: npt.NDArray[np.uint8],
        node_keys: IntArray,
        *,
        folds: int,
        seed: int,
    ) -> GraphStore:
        """Write the training graph: the entries whose part is TRAIN.

        Args:
            node_keys: [num_nodes], by which the folds are drawn.
        """
        train = graph.filter_entries(entry_parts == TRAIN)
        train.save(self.folder / "train_graph")
        rows = np.repeat(np.arange(train.num_nodes, dtype=np.int64), train.degrees)
        fold = spread_to_entries(
            train,
            rows,
            assign_folds(*(node_keys[end] for end in train.edges()), folds=folds, seed=seed),
        )
        write_array(self.folder / "entry_folds.npy", fold)
        return train

    def write_held_out(self, part: str, pairs: LabelledPairs) -> None:
        columns = {"source": pairs.source, "target": pairs.target, "label": pairs.label}
        with atomic_path(self.folder / f"{part}.parquet") as temporary:
            pl.DataFrame(columns).write_parquet(temporary)


def spread_to_entries(
    graph: GraphStore, rows: IntArray, values: npt.NDArray[np.uint8]
) -> npt.NDArray[np.uint8]:
    """Give both entries of an edge the value of the edge.

    Args:
        rows: [2 * num_edges] row of every entry.
        values: [num_edges] in the order of ``graph.edges()``.
    """
    upper = rows < graph.indices
    out = np.empty(len(graph.indices), dtype=values.dtype)
    out[upper] = values
    # entries below the diagonal, sorted by (column, row), are the edges in their order
    lower = np.flatnonzero(~upper)
    out[lower[np.lexsort((rows[lower], graph.indices[lower]))]] = values
    return out


def require_folds(folds: int, num_links: int) -> None:
    """Refuse more folds than links."""
    if folds > num_links:
        raise PegError(
            f"{folds} folds were asked for, there are {num_links} training links; "
            "lower `split.folds`"
        )
