"""Non-links of the same population as the links: one end of each link is replaced.

Newest links lead to nodes that the training graph hardly knows; pairs drawn at random do not,
and a model could tell the two apart by that alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.errors import GraphTooSmall
from peg_core.graph.graph_store import GraphStore
from peg_core.splits.entry_chunk import entry_chunks, find_entries
from peg_core.splits.pair_hash import pair_hash
from peg_core.splits.partners import Partners
from peg_core.splits.reversed_links import choose_reversed

IntArray = npt.NDArray[np.integer[Any]]
Nodes = npt.NDArray[np.int64]
Pairs = tuple[Nodes, Nodes]

# Links that are looked at together.
CHUNK = 2**20
# Draws by which an end is looked for among the nodes of its group, then among all that were there.
MOST_DRAWS = 32
# Nodes without an edge come after all times.
NEVER = np.iinfo(np.int64).max
ALWAYS = np.iinfo(np.int64).min


class AdmissibleNodes:
    """Which nodes may replace an end of a link: those of its group that were there by then.

    Args:
        groups: [num_nodes], small numbers; a node is replaced by one of its own group. What must
            not differ between links and non-links belongs here.
        first_times: [num_nodes], since when each node is there.
    """

    def __init__(self, groups: IntArray, first_times: Nodes) -> None:
        self._groups = groups
        self._members = []
        for group in range(int(groups.max(initial=0)) + 1):
            members = np.flatnonzero(groups == group)
            order = np.argsort(first_times[members], kind="stable")
            self._members.append((members[order], first_times[members[order]]))

    @classmethod
    def of_split(cls, train: GraphStore, first_times: Nodes) -> AdmissibleNodes:
        """Groups of a split: of each kind nodes with an edge to train on, and those without."""
        cold = (train.degrees == 0).astype(np.uint8)
        return cls(2 * kinds_of_nodes(train) + cold, first_times)

    def draw(self, ends: Nodes, times: Nodes, words: npt.NDArray[np.uint64]) -> Nodes:
        """A node for each end, as likely as any other of its group, [num_ends].

        Args:
            ends: The nodes to be replaced, which may be drawn themselves.
            times: By when a node has to be there; no node was there before its own time.
            words: 64 random bits each.
        """
        drawn = ends.copy()
        own_groups = self._groups[ends]
        for group, (members, since) in enumerate(self._members):
            own = np.flatnonzero(own_groups == group)
            count = np.searchsorted(since, times[own], side="right")
            place = ((words[own] >> np.uint64(12)) * 2.0**-52 * count).astype(np.int64)
            there = count > 0
            drawn[own[there]] = members[place[there]]
        return drawn


@dataclass(frozen=True)
class MatchedNegatives:
    """A non-link for every link; it depends on the link and the seed, on nothing around it.

    One end, chosen at random, is replaced by a node of its group that was there by the time of
    the link. A pair is never a known link, whatever its part. Two links may get the same non-link.
    Where links have a direction, some get their own reverse.

    Args:
        known: Every known edge.
        times: [2 * num_edges], or None: all nodes were there from the beginning.
        train: The training graph.
        seed: Of the draws.
    """

    known: GraphStore
    times: IntArray | None
    train: GraphStore
    seed: int

    def chunks(self, links: Iterator[Pairs]) -> Iterator[Pairs]:
        """Source and target of the non-links of some links at a time."""
        for source, target in links:
            for first in range(0, len(source), CHUNK):
                part = slice(first, first + CHUNK)
                ends = source[part].astype(np.int64), target[part].astype(np.int64)
                yield self._replace(ends)

    @cached_property
    def _partners(self) -> Partners:
        return Partners.of(self.known)

    @cached_property
    def _first_times(self) -> Nodes:
        return find_first_times(self.known, self.times)

    @cached_property
    def _steps(self) -> tuple[AdmissibleNodes, AdmissibleNodes]:
        """Whom an end is replaced by: nodes of its group, or else any that was there."""
        everybody = kinds_of_nodes(self.known)
        return (
            AdmissibleNodes.of_split(self.train, self._first_times),
            AdmissibleNodes(everybody, self._first_times),
        )

    def _replace(self, links: Pairs) -> Pairs:
        """The non-links of some links; where no node of the group serves, any that was there."""
        source, target = links
        times = self._times_of(links)
        found = np.stack(links)
        turned = choose_reversed(self.known, source, target, seed=self.seed)
        found[:, turned] = found[::-1, turned]
        waiting = np.flatnonzero(~turned)
        for attempt in range(MOST_DRAWS * len(self._steps)):
            own = source[waiting], target[waiting]
            words = pair_hash(*own, seed=self.seed, purpose=f"matched non-links {attempt}")
            second = (words & np.uint64(1)).astype(bool)
            ends = np.where(second, own[1], own[0])
            drawn = self._steps[attempt // MOST_DRAWS].draw(ends, times[waiting], words)
            pairs = np.where(second, own[0], drawn), np.where(second, drawn, own[1])
            good = (pairs[0] != pairs[1]) & ~self.known.contains_link(*pairs)
            found[:, waiting[good]] = np.stack(pairs)[:, good]
            waiting = waiting[~good]
            if not len(waiting):
                break
        for link in waiting.tolist():
            found[:, link] = self._look_at_all(source[link], target[link], times[link])
        if self._partners.ordered:
            return found[0], found[1]
        return found.min(axis=0), found.max(axis=0)

    def _times_of(self, links: Pairs) -> Nodes:
        if self.times is None:
            return np.zeros(len(links[0]), dtype=np.int64)
        return self.times[find_entries(self.known, *links)].astype(np.int64)

    def _look_at_all(self, source: int, target: int, time: int) -> tuple[int, int]:
        """A non-link of a link whose ends are linked to nearly all others."""
        there = self._first_times <= time
        ends = np.array([source]), np.array([target])
        (word,) = pair_hash(*ends, seed=self.seed, purpose="last non-link")
        for nodes in (np.flatnonzero(there), np.flatnonzero(~there)):
            for second, kept in enumerate((source, target)):
                (first,), (last,) = self._partners.partner_ranges(np.array([not second]))
                own = nodes[(nodes >= first) & (nodes < last) & (nodes != kept)]
                pairs = np.full(len(own), kept), own
                free = own[~self.known.contains_link(*(pairs[::-1] if second else pairs))]
                if len(free):
                    other = int(free[int(word) % len(free)])
                    return (other, kept) if second else (kept, other)
        raise GraphTooSmall.for_negatives(asked=1, available=0)


def kinds_of_nodes(graph: GraphStore) -> npt.NDArray[np.uint8]:
    """The kind of every node by its place, [num_nodes]; 0 where all are of one."""
    if graph.relations is None:
        return np.zeros(graph.num_nodes, dtype=np.uint8)
    sizes = [kind.size for kind in graph.relations.kinds]
    return np.repeat(np.arange(len(sizes), dtype=np.uint8), sizes)


def find_first_times(graph: GraphStore, times: IntArray | None) -> Nodes:
    """When the first edge of every node came, [num_nodes]; NEVER where there is none.

    Args:
        times: [2 * num_edges], or None: nobody knows, all nodes count as there.
    """
    if times is None:
        return np.full(graph.num_nodes, ALWAYS)
    first = np.full(graph.num_nodes, NEVER)
    for chunk in entry_chunks(graph):
        np.minimum.at(first, chunk.rows, times[chunk.part].astype(np.int64))
    return first
