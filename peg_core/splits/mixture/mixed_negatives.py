"""Non-links to train against, of several kinds: those to rank against later, and easier ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.errors import LeakFound
from peg_core.graph.graph_store import GraphStore
from peg_core.splits.mixture.negative_pools import NegativePools
from peg_core.splits.negative_sampling import MOST_ROUNDS, Pairs, sample_non_edges
from peg_core.splits.partners import Partners
from peg_core.splits.reversed_links import REVERSED_SHARE, has_reverses, one_way

IntArray = npt.NDArray[np.integer[Any]]
Nodes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

UNIFORM, CORRUPT, HARD = range(3)


@dataclass(frozen=True)
class Mixture:
    """Shares of the non-links of a step, which need not add up to 1.

    Args:
        uniform: Any pair without an edge.
        corrupt: A link with one end replaced by any node.
        hard: A link with one end replaced by a node that is close to the other end: one of the
            best by personalised PageRank, one of the best by cosine of the features, or a
            neighbour of a neighbour, in equal parts.
    """

    uniform: float = 0.0
    corrupt: float = 0.0
    hard: float = 0.0


class MixedNegatives:
    """Draws non-links as :class:`NegativeSampler` does, each of a kind by lot.

    Args:
        graph: Whose links are no negatives; both ends are of the kinds that a link joins.
        mixture: Shares of the kinds.
        pools: Nodes close to every node; needed for hard ones.
    """

    def __init__(
        self, graph: GraphStore, mixture: Mixture, pools: NegativePools | None = None
    ) -> None:
        self.graph, self.pools = graph, pools
        shares = np.array([mixture.uniform, mixture.corrupt, mixture.hard])
        if not (shares >= 0).all() or not shares.sum() > 0:
            raise ValueError(f"shares are {mixture}, needed are numbers above 0")
        if mixture.hard and pools is None:
            raise ValueError(f"shares are {mixture}, but hard non-links need pools")
        if pools is not None and (links := pools.count_links(graph)):
            raise LeakFound.of(part="train", found_in="the pools of hard non-links", count=links)
        self.limits = np.cumsum(shares / shares.sum())[:-1]
        self._partners = Partners.of(graph)

    def draw(self, source: IntArray, target: IntArray, *, rng: np.random.Generator) -> Pairs:
        """As many non-links as links are given, none of them a link or a loop.

        Where links have a direction, some are the reverses of links that are given, as
        :class:`NegativeSampler` draws them.
        """
        found = self._mixed(np.asarray(source, np.int64), np.asarray(target, np.int64), rng)
        if not has_reverses(self.graph):
            return found[0], found[1]
        turned = rng.random(len(source)) < REVERSED_SHARE
        turned &= one_way(self.graph, source, target)
        return np.where(turned, target, found[0]), np.where(turned, source, found[1])

    def _mixed(self, source: Nodes, target: Nodes, rng: np.random.Generator) -> Nodes:
        """Pairs of all kinds, [2, num_pairs]."""
        kind = np.searchsorted(self.limits, rng.random(len(source)), side="right")
        keeps_source = rng.random(len(source)) < 0.5
        ends = np.stack([source, target])
        replaced = keeps_source.astype(np.int64)  # which of the two ends
        waiting = np.flatnonzero(kind != UNIFORM)
        found = ends.copy()
        for _ in range(MOST_ROUNDS):
            kept = ends[1 - replaced[waiting], waiting]
            others = self._others(kind[waiting], kept, keeps_source[waiting], rng)
            found[replaced[waiting], waiting] = others
            first, second = found[:, waiting]
            waiting = waiting[(first == second) | self.graph.contains_link(first, second)]
            if not len(waiting):
                break
        left = np.concatenate([np.flatnonzero(kind == UNIFORM), waiting])
        found[:, left] = sample_non_edges(self.graph, len(left), rng=rng)
        return found

    def _others(
        self, kind: IntArray, kept: Nodes, keeps_source: Mask, rng: np.random.Generator
    ) -> Nodes:
        """A node in the place of each end that goes, of the kind that may stand there."""
        first, last = self._partners.partner_ranges(keeps_source)
        others: Nodes = rng.integers(first, last)
        hard = np.flatnonzero(kind == HARD)
        if len(hard):
            drawn = self._close(kept[hard], rng)
            fits = (drawn >= first[hard]) & (drawn < last[hard])
            others[hard[fits]] = drawn[fits]
        return others

    def _close(self, kept: Nodes, rng: np.random.Generator) -> Nodes:
        """A node close to each, by a heuristic drawn by lot; below 0 where it knows none."""
        assert self.pools is not None
        heuristics = len(self.pools.pools)
        choice = rng.integers(0, heuristics + 1, size=len(kept))
        found = np.full(len(kept), -1, dtype=np.int64)
        for number in range(heuristics):
            own = choice == number
            found[own] = self.pools.draw(number, kept[own], rng=rng)
        own = choice == heuristics
        found[own] = self._neighbours(self._neighbours(kept[own], rng), rng)
        return found

    def _neighbours(self, nodes: Nodes, rng: np.random.Generator) -> Nodes:
        """A neighbour of each; a node without any stays."""
        start = self.graph.indptr[nodes]
        degrees = self.graph.indptr[nodes + 1] - start
        entry = start + (rng.random(len(nodes)) * degrees).astype(np.int64)
        found = np.array(nodes)
        found[degrees > 0] = self.graph.indices[entry[degrees > 0]]
        return found
