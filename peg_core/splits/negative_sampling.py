"""Pairs without an edge."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.errors import GraphTooSmall
from peg_core.graph.graph_store import GraphStore
from peg_core.splits.partners import Partners

IntArray = npt.NDArray[np.integer[Any]]
Pairs = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]

NEGATIVES = ("uniform", "degree", "hard", "partner")
# Rounds of drawing again what turned out to be an edge, before uniform pairs fill up.
MOST_ROUNDS = 20


class NegativeSampler:
    """Non-links to train against.

    Args:
        graph: Whose edges are no negatives.
        kind: "uniform": any pair; "degree": the ends of links, one of them replaced by a
            node drawn by degree^0.75; "hard": replaced by a neighbour of a neighbour;
            "partner": the anchor of every link stays, its partner is replaced by any other.
    """

    def __init__(self, graph: GraphStore, kind: str = "uniform") -> None:
        if kind not in NEGATIVES:
            raise ValueError(f"negatives are {kind!r}, needed is one of {NEGATIVES}")
        self.graph, self.kind = graph, kind
        self._partners = Partners.of(graph)
        self._cumulative: npt.NDArray[np.float64] | None = None

    def draw(self, source: IntArray, target: IntArray, *, rng: np.random.Generator) -> Pairs:
        """As many non-links as links are given, none of them an edge or a loop."""
        if self.kind == "uniform":
            return sample_non_edges(self.graph, len(source), rng=rng)
        kept = self._kept_end(source, target, rng)
        other = np.empty_like(kept)
        waiting = np.arange(len(kept))
        for _ in range(MOST_ROUNDS):
            other[waiting] = self._other_end(kept[waiting], rng)
            bad = (kept[waiting] == other[waiting]) | self.graph.contains(
                kept[waiting], other[waiting]
            )
            waiting = waiting[bad]
            if not len(waiting):
                return kept, other
        kept[waiting], other[waiting] = sample_non_edges(self.graph, len(waiting), rng=rng)
        return kept, other

    def _kept_end(
        self, source: IntArray, target: IntArray, rng: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        if self.kind == "partner" and not self._partners.one_kind:
            return self._partners.anchored(source, target)[0]
        keep_source = rng.random(len(source)) < 0.5
        return np.where(keep_source, source, target).astype(np.int64)

    def _other_end(
        self, kept: npt.NDArray[np.int64], rng: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        if self.kind == "partner":
            return rng.integers(self._partners.first, self._partners.last, size=len(kept))
        if self.kind == "degree":
            if self._cumulative is None:
                self._cumulative = np.cumsum(self.graph.degrees.astype(np.float64) ** 0.75)
            level = rng.random(len(kept)) * self._cumulative[-1]
            return np.searchsorted(self._cumulative, level, side="right").astype(np.int64)
        return self._random_neighbours(self._random_neighbours(kept, rng), rng)

    def _random_neighbours(
        self, nodes: npt.NDArray[np.int64], rng: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        """A neighbour of each; a node without any stays."""
        start = self.graph.indptr[nodes]
        degrees = self.graph.indptr[nodes + 1] - start
        entry = start + (rng.random(len(nodes)) * degrees).astype(np.int64)
        found = np.array(nodes)
        some = degrees > 0
        found[some] = self.graph.indices[entry[some]]
        return found


def sample_non_edges(graph: GraphStore, count: int, *, rng: np.random.Generator) -> Pairs:
    """``count`` distinct pairs source < target that are not edges, uniformly drawn."""
    if is_crowded(graph, count):
        return _from_all_pairs(graph, count, rng=rng)
    keys = np.zeros(0, dtype=np.int64)
    while len(keys) < count:
        more = draw_keys(graph, int(1.3 * (count - len(keys))) + 16, rng=rng)
        keys = _unique_in_order(np.concatenate([keys, more]))
    return np.divmod(keys[:count], graph.num_nodes)


def draw_keys(graph: GraphStore, draws: int, *, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Those of some random pairs that are not edges, ``source * num_nodes + target`` of each.

    How many pairs are drawn at once makes no difference to those that come after them.
    """
    drawn = rng.integers(0, graph.num_nodes, size=(draws, 2))
    source, target = drawn.min(axis=1), drawn.max(axis=1)
    keep = (source != target) & ~graph.contains(source, target)
    return source[keep] * graph.num_nodes + target[keep]


def is_crowded(graph: GraphStore, count: int) -> bool:
    """Whether so many pairs are most of those without an edge; more of them are refused."""
    available = graph.num_nodes * (graph.num_nodes - 1) // 2 - graph.num_edges
    if count > available:
        raise GraphTooSmall.for_negatives(asked=count, available=available)
    return 2 * count > available


def _from_all_pairs(graph: GraphStore, count: int, *, rng: np.random.Generator) -> Pairs:
    """For small dense graphs, where drawing again and again would not end."""
    source, target = np.triu_indices(graph.num_nodes, k=1)
    free = np.flatnonzero(~graph.contains(source, target))
    chosen = rng.choice(free, size=count, replace=False)
    return source[chosen].astype(np.int64), target[chosen].astype(np.int64)


def _unique_in_order(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    _, first = np.unique(keys, return_index=True)
    return keys[np.sort(first)]
