"""Non-links that do not fit into memory: the same that are drawn in memory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import GraphStore
from peg_core.mapped_array import new_mapped_array
from peg_core.random_streams import mixed_bits
from peg_core.splits.negative_sampling import (
    Pairs,
    draw_keys,
    is_crowded,
    sample_non_edges,
)

Words = npt.NDArray[np.uint64]

# Pairs that are drawn at once, and looked at together.
CHUNK = 2**20
# Pairs among which repeated ones are looked for at once.
MOST_COMPARED = 2**22


class StoredNonEdges:
    """Distinct pairs that might be links and are not, uniformly drawn.

    They are those that :func:`sample_non_edges` draws with the same stream, but lie in a file.
    Only where a graph has nearly all edges that it could have are they drawn in memory.

    Args:
        graph: Whose edges they are not.
        count: How many.
        rng: What they are drawn with.
        folder: Gets files that are of no use later.
    """

    def __init__(
        self, graph: GraphStore, count: int, *, rng: np.random.Generator, folder: Path
    ) -> None:
        self._graph, self._rng = graph, rng
        self._drawn: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        if is_crowded(graph, count) or count == 0:
            source, target = sample_non_edges(graph, count, rng=rng)
            self._keys: npt.NDArray[np.int64] = source * graph.num_nodes + target
            return
        self._keys = new_mapped_array(folder / "non_edges.npy", (count,), np.int64)
        self._repeated = new_mapped_array(folder / "repeated.npy", (count,), np.bool_)
        filled = 0
        while filled < count:
            self._fill(filled)
            self._mark_repeated()
            filled = self._drop_repeated()

    def chunks(self, first: int, last: int) -> Iterator[Pairs]:
        """Source and target of some of them in the order in which they were drawn."""
        for start in range(first, last, CHUNK):
            keys = self._keys[start : min(start + CHUNK, last)]
            yield np.divmod(keys, self._graph.num_nodes)

    def _fill(self, filled: int) -> None:
        """Put pairs where none are yet, in the order in which they are drawn."""
        while filled < len(self._keys):
            if not len(self._drawn):
                draws = min(int(1.3 * (len(self._keys) - filled)) + 16, CHUNK)
                self._drawn = draw_keys(self._graph, draws, rng=self._rng)
            taken = self._drawn[: len(self._keys) - filled]
            self._drawn = self._drawn[len(taken) :]  # the rest comes next
            self._keys[filled : filled + len(taken)] = taken
            filled += len(taken)

    def _mark_repeated(self) -> None:
        """Find pairs that were drawn before, in ranges of a hash of them."""
        self._repeated[:] = False
        ranges = -(-len(self._keys) // MOST_COMPARED)
        bounds = [(number * 2**64) // ranges for number in range(ranges + 1)]
        for low, high in pairwise(bounds):
            hashes, places = self._hashed_between(np.uint64(low), np.uint64(high - 1))
            order = np.argsort(hashes, kind="stable")
            again = np.flatnonzero(hashes[order][1:] == hashes[order][:-1]) + 1
            self._repeated[places[order[again]]] = True

    def _hashed_between(
        self, low: np.uint64, high: np.uint64
    ) -> tuple[Words, npt.NDArray[np.int64]]:
        """Hashes in a range, no two pairs have the same, and where their pairs stand."""
        found = []
        for first in range(0, len(self._keys), CHUNK):
            keys = np.asarray(self._keys[first : first + CHUNK])
            hashes = mixed_bits(keys.view(np.uint64))
            places = np.flatnonzero((hashes >= low) & (hashes <= high))
            found.append((hashes[places], first + places))
        hashes, places = (np.concatenate(column) for column in zip(*found, strict=True))
        return hashes, places

    def _drop_repeated(self) -> int:
        """Close the gaps; returns how many pairs are left."""
        left = 0
        for first in range(0, len(self._keys), CHUNK):
            part = slice(first, first + CHUNK)
            kept = np.array(self._keys[part][~self._repeated[part]])
            self._keys[left : left + len(kept)] = kept
            left += len(kept)
        return left
