"""A split on disk: the training graph, its folds, and the labelled held-out pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.atomic_file import write_array
from peg_core.errors import PegError
from peg_core.graph.graph_store import GraphStore, index_dtype
from peg_core.mapped_array import new_mapped_array
from peg_core.splits.edge_split import TRAIN, assign_folds
from peg_core.splits.entry_chunk import EntryChunk, entry_chunks, list_links
from peg_core.splits.filtered_graph import KeptRows, without_links, write_filtered
from peg_core.splits.held_out_pairs import CHUNK, HeldOutPairs, pair_chunks
from peg_core.storage.shared_array import create_array, write_rows

IntArray = npt.NDArray[np.integer[Any]]

Pairs = tuple[IntArray, IntArray]
# Links in the order of their folds, [2, num_links], and how many each fold has, [folds].
LinksByFold = tuple[IntArray, IntArray]

# Entries of the training graph carry the fold of their edge; this is no fold.
NO_FOLD = -1
# The training graph, a folder of its own inside the split.
TRAIN_GRAPH = "train_graph"
ENTRY_PARTS = "entry_parts.npy"
ENTRY_FOLDS = "entry_folds.npy"


@dataclass(frozen=True)
class LinkChunks:
    """Links that are read some at a time, anew whenever they are asked for."""

    read: Callable[[], Iterator[Pairs]]

    def __iter__(self) -> Iterator[Pairs]:
        return self.read()


@dataclass(frozen=True)
class SplitStore:
    """Opens what the split wrote; gives the training graph with or without a fold."""

    folder: Path

    @classmethod
    def open(cls, folder: Path) -> SplitStore:
        return cls(folder)

    def train_graph(self) -> GraphStore:
        return GraphStore.open(self.folder / TRAIN_GRAPH)

    def entry_folds(self) -> npt.NDArray[np.uint8]:
        """The fold of every entry of the training graph, of context 255, [2 * num_edges]."""
        folds: npt.NDArray[np.uint8] = np.load(self.folder / ENTRY_FOLDS, mmap_mode="r")
        return folds

    def graph_without(self, fold: int) -> GraphStore:
        """The training graph less the links of one fold; the whole of it for ``NO_FOLD``."""
        graph = self.train_graph()
        return graph if fold == NO_FOLD else without_links(graph, self.entry_folds() != fold)

    def fold_starts(self) -> npt.NDArray[np.int64]:
        """Where the links of each fold begin among all, [folds + 1]."""
        starts: npt.NDArray[np.int64] = np.load(self.folder / "fold_starts.npy")
        return starts

    def links(self, fold: int = NO_FOLD) -> Pairs:
        """Source and target of the training links of a fold, or of all, fold by fold.

        Memory-mapped: only what is looked at is read.
        """
        source, target = np.load(self.folder / "links.npy", mmap_mode="r")
        if fold == NO_FOLD:
            return source, target
        part = slice(*self.fold_starts()[fold : fold + 2])
        return source[part], target[part]

    def held_out_file(self, part: str) -> Path:
        """The table of the pairs of ``valid`` or ``test``."""
        return self.folder / f"{part}.parquet"

    def held_out(self, part: str, *, most: int | None = None) -> HeldOutPairs:
        """The pairs of ``valid`` or ``test``.

        Args:
            part: Which.
            most: Take every second, third, ... so that no more than this are left; none: all.
        """
        return HeldOutPairs.open(self.held_out_file(part), most=most)

    def held_out_links(self) -> dict[str, Iterable[Pairs]]:
        """The links that nothing may learn from, by part, some at a time."""
        return {part: LinkChunks(partial(self._link_chunks, part)) for part in ("valid", "test")}

    def some_held_out_links(self, part: str, row_groups: Sequence[int]) -> Iterable[Pairs]:
        """The links in some row groups of the table of ``valid`` or ``test``."""
        return LinkChunks(partial(self._link_chunks, part, row_groups))

    def hidden_links(self, fold: int) -> dict[str, Iterable[Pairs]]:
        """What a model must not see while ``fold`` supervises: held-out links and the fold."""
        if fold == NO_FOLD:
            return self.held_out_links()
        return {
            **self.held_out_links(),
            f"fold {fold}": LinkChunks(partial(self._fold_chunks, fold)),
        }

    def _fold_chunks(self, fold: int) -> Iterator[Pairs]:
        source, target = self.links(fold)
        for first in range(0, len(source), CHUNK):
            yield source[first : first + CHUNK], target[first : first + CHUNK]

    def _link_chunks(self, part: str, row_groups: Sequence[int] | None = None) -> Iterator[Pairs]:
        for source, target, label in pair_chunks(self.held_out_file(part), row_groups):
            yield source[label == 1], target[label == 1]

    def write_train(
        self,
        graph: GraphStore,
        entry_parts: npt.NDArray[np.uint8],
        node_keys: IntArray,
        *,
        folds: int,
        seed: int,
    ) -> GraphStore:
        """Write the training graph, the links whose part is TRAIN, and these by fold.

        Args:
            entry_parts: [2 * num_edges].
            node_keys: [num_nodes], by which the folds are drawn.
        """
        folder = self.folder / TRAIN_GRAPH
        write_filtered(graph, lambda part: entry_parts[part] == TRAIN, folder)
        train = GraphStore.open(folder)
        require_folds(folds, train.num_linked_pairs)
        shape = (len(train.indices),)
        entry_folds = new_mapped_array(self.folder / ENTRY_FOLDS, shape, np.uint8)
        sizes = assign_folds(train, node_keys, entry_folds, folds=folds, seed=seed)

        def pieces() -> Iterator[LinksByFold]:
            for chunk in entry_chunks(train):
                yield links_by_fold(train, chunk, entry_folds[chunk.part], folds)

        if train.is_directed:  # a pair may have two
            sizes = np.sum([counts for _, counts in pieces()], axis=0)
        self.write_links(pieces(), sizes, train.indices.dtype)
        return train

    def create_train(self, num_nodes: int, entries: int, columns: Iterable[str]) -> None:
        """Make room for the training graph and its folds, for many tasks to fill.

        Args:
            entries: Of the training graph.
            columns: Names of its arrays of entries, beside the indices.
        """
        folder = self.folder / TRAIN_GRAPH
        create_array(folder / "indptr.npy", (num_nodes + 1,), np.int64)
        create_array(folder / "indices.npy", (entries,), index_dtype(num_nodes))
        for name in columns:
            kind = np.uint16 if name == "codes" else np.float32
            create_array(folder / f"{name}.npy", (entries,), kind)
        create_array(self.folder / ENTRY_FOLDS, (entries,), np.uint8)

    def write_train_rows(self, kept: KeptRows, first: int) -> None:
        """Write entries of the training graph from ``first`` on."""
        folder = self.folder / TRAIN_GRAPH
        write_rows(folder / "indptr.npy", kept.first_row, kept.indptr)
        for name, values in kept.columns.items():
            write_rows(folder / f"{name}.npy", first, values)

    def write_entry_folds(self, first: int, folds: npt.NDArray[np.uint8]) -> None:
        """Write the folds of entries of the training graph from ``first`` on."""
        write_rows(self.folder / ENTRY_FOLDS, first, folds)

    def write_links(
        self, pieces: Iterable[LinksByFold], sizes: IntArray, kind: npt.DTypeLike
    ) -> None:
        """Write every training link once, fold by fold, and where the folds begin.

        Args:
            pieces: The links in the order of the graph, some at a time.
            sizes: Links of each fold, [folds].
            kind: Of node numbers.
        """
        starts = np.concatenate([[0], np.cumsum(sizes)])
        write_array(self.folder / "fold_starts.npy", starts)
        links = new_mapped_array(self.folder / "links.npy", (2, int(starts[-1])), kind)
        free = starts[:-1].copy()
        for ends, counts in pieces:
            first = 0
            for fold, count in enumerate(counts.tolist()):
                links[:, free[fold] : free[fold] + count] = ends[:, first : first + count]
                free[fold] += count
                first += count
        links.flush()

    def new_parts(self, graph: GraphStore) -> npt.NDArray[np.uint8]:
        """An array for the part of every entry of a graph, on disk."""
        return new_mapped_array(self.folder / ENTRY_PARTS, (len(graph.indices),), np.uint8)

    def create_parts(self, num_entries: int) -> None:
        """Make room for the part of every entry of a graph, for many tasks to fill."""
        create_array(self.folder / ENTRY_PARTS, (num_entries,), np.uint8)

    def write_parts(self, first: int, parts: npt.NDArray[np.uint8]) -> None:
        """Write the parts of entries from ``first`` on."""
        write_rows(self.folder / ENTRY_PARTS, first, parts)

    def parts(self) -> npt.NDArray[np.uint8]:
        """The part of every entry of the whole graph, [2 * num_edges]."""
        parts: npt.NDArray[np.uint8] = np.load(self.folder / ENTRY_PARTS, mmap_mode="r")
        return parts

    def write_held_out(self, part: str, pairs: HeldOutPairs) -> None:
        pairs.write(self.held_out_file(part))


def links_by_fold(
    graph: GraphStore, chunk: EntryChunk, folds_of_entries: npt.NDArray[np.uint8], folds: int
) -> LinksByFold:
    """The links among some entries, each once, those of a fold in the order of the graph."""
    ends, pair = list_links(graph, chunk, chunk.pairs)
    fold = folds_of_entries[chunk.pairs][pair]
    order = np.argsort(fold, kind="stable")
    return ends[:, order], np.bincount(fold, minlength=folds)


def require_folds(folds: int, num_links: int) -> None:
    """Refuse more folds than links."""
    if folds > num_links:
        raise PegError(
            f"{folds} folds were asked for, there are {num_links} training links; "
            "lower `split.folds`"
        )
