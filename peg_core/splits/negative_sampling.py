"""Pairs that might be links of the predicted relation, and are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.errors import GraphTooSmall
from peg_core.graph.graph_store import GraphStore
from peg_core.splits.partners import Partners
from peg_core.splits.reversed_links import REVERSED_SHARE, has_reverses, one_way

IntArray = npt.NDArray[np.integer[Any]]
Nodes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Pairs = tuple[Nodes, Nodes]

NEGATIVES = ("uniform", "degree", "hard", "partner")
# Rounds of drawing again what turned out to be an edge, before uniform pairs fill up.
MOST_ROUNDS = 20


class NegativeSampler:
    """Non-links to train against.

    Args:
        graph: Whose links are no negatives. Both ends are of the kinds that a link joins. Where
            links have a direction, about a quarter are the reverses of links that are given.
        kind: "uniform": any pair; "degree": the ends of links, one of them replaced by a
            node drawn by degree^0.75; "hard": replaced by a neighbour of a neighbour;
            "partner": the anchor of every link stays, its partner is replaced by any other.
            Nodes of the wrong kind are passed over.
    """

    def __init__(self, graph: GraphStore, kind: str = "uniform") -> None:
        if kind not in NEGATIVES:
            raise ValueError(f"negatives are {kind!r}, needed is one of {NEGATIVES}")
        self.graph, self.kind = graph, kind
        self._partners = Partners.of(graph)
        self._cumulative: npt.NDArray[np.float64] | None = None

    def draw(self, source: IntArray, target: IntArray, *, rng: np.random.Generator) -> Pairs:
        """As many non-links as links are given, none of them a link or a loop."""
        if self.kind == "uniform":
            found = sample_non_edges(self.graph, len(source), rng=rng)
        else:
            found = self._replace_an_end(source, target, rng)
        if not has_reverses(self.graph):
            return found
        turned = rng.random(len(source)) < REVERSED_SHARE
        turned &= one_way(self.graph, source, target)
        return np.where(turned, target, found[0]), np.where(turned, source, found[1])

    def _replace_an_end(
        self, source: IntArray, target: IntArray, rng: np.random.Generator
    ) -> Pairs:
        kept, is_source = self._kept_end(source, target, rng)
        other = np.empty_like(kept)
        waiting = np.arange(len(kept))
        for _ in range(MOST_ROUNDS):
            own = kept[waiting], is_source[waiting]
            other[waiting] = self._other_end(*own, rng)
            waiting = waiting[~self._is_possible(*own, other[waiting])]
            if not len(waiting):
                return self._in_order(kept, is_source, other)
        kept[waiting], other[waiting] = sample_non_edges(self.graph, len(waiting), rng=rng)
        is_source[waiting] = True
        return self._in_order(kept, is_source, other)

    def _in_order(self, kept: Nodes, is_source: Mask, other: Nodes) -> Pairs:
        """Source and target, where the two differ."""
        if not self._partners.ordered:
            return kept, other
        return np.where(is_source, kept, other), np.where(is_source, other, kept)

    def _is_possible(self, kept: Nodes, is_source: Mask, other: Nodes) -> Mask:
        """Which pairs are of the right kinds, no links and no loops."""
        pairs = self._in_order(kept, is_source, other)
        good = (kept != other) & ~self.graph.contains_link(*pairs)
        first, last = self._partners.partner_ranges(is_source)
        found: Mask = good & (other >= first) & (other < last)
        return found

    def _kept_end(
        self, source: IntArray, target: IntArray, rng: np.random.Generator
    ) -> tuple[Nodes, Mask]:
        """The end of each link that stays, and whether that is its source."""
        if self.kind == "partner" and self._partners.ordered:
            return source.astype(np.int64), np.ones(len(source), dtype=np.bool_)
        keep_source = rng.random(len(source)) < 0.5
        return np.where(keep_source, source, target).astype(np.int64), keep_source

    def _other_end(self, kept: Nodes, is_source: Mask, rng: np.random.Generator) -> Nodes:
        if self.kind == "partner":
            return rng.integers(self._partners.first, self._partners.last, size=len(kept))
        first, last = self._partners.partner_ranges(is_source)
        if self.kind == "degree":
            if self._cumulative is None:
                levels = np.cumsum(self.graph.degrees.astype(np.float64) ** 0.75)
                self._cumulative = np.concatenate([[0.0], levels])
            low, high = self._cumulative[first], self._cumulative[last]
            level = low + rng.random(len(kept)) * (high - low)
            found = np.searchsorted(self._cumulative[1:], level, side="right")
            return np.minimum(found, last - 1).astype(np.int64)
        found = self._random_neighbours(self._random_neighbours(kept, rng), rng)
        astray = (found < first) | (found >= last)
        if astray.any():  # a neighbour of two users' item is a user: one step more
            found[astray] = self._random_neighbours(found[astray], rng)
        return found

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
    """``count`` distinct pairs that might be links and are not, uniformly drawn.

    Source is smaller than target where pairs have no order. Where links have a direction no
    pair is the reverse of a link: :mod:`peg_core.splits.reversed_links` gives those.
    """
    if is_crowded(graph, count):
        return _from_all_pairs(graph, count, rng=rng)
    keys = np.zeros(0, dtype=np.int64)
    while len(keys) < count:
        more = draw_keys(graph, int(1.3 * (count - len(keys))) + 16, rng=rng)
        keys = _unique_in_order(np.concatenate([keys, more]))
    return np.divmod(keys[:count], graph.num_nodes)


def draw_keys(graph: GraphStore, draws: int, *, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Those of some random pairs that are free, ``source * num_nodes + target`` of each.

    How many pairs are drawn at once makes no difference to those that come after them.
    """
    source, target = Partners.of(graph).draw_pairs(draws, rng=rng)
    keep = _are_free(graph, source, target)
    return source[keep] * graph.num_nodes + target[keep]


def is_crowded(graph: GraphStore, count: int) -> bool:
    """Whether so many pairs are most of those without a link; more of them are refused."""
    directions = 2 if has_reverses(graph) else 1
    available = Partners.of(graph).num_pairs - directions * graph.num_linked_pairs
    if count > available:
        raise GraphTooSmall.for_negatives(asked=count, available=available)
    return 2 * count > available


def _from_all_pairs(graph: GraphStore, count: int, *, rng: np.random.Generator) -> Pairs:
    """For small dense graphs, where drawing again and again would not end."""
    source, target = Partners.of(graph).all_pairs()
    free = np.flatnonzero(_are_free(graph, source, target))
    chosen = rng.choice(free, size=count, replace=False)
    return source[chosen].astype(np.int64), target[chosen].astype(np.int64)


def _are_free(graph: GraphStore, source: IntArray, target: IntArray) -> Mask:
    """Which possible pairs are no loops and not linked, in either direction."""
    free: Mask = (source != target) & ~graph.contains_link(source, target)
    if has_reverses(graph):
        free &= ~graph.contains_link(target, source)
    return free


def _unique_in_order(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    _, first = np.unique(keys, return_index=True)
    return keys[np.sort(first)]
