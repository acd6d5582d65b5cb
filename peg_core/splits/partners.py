"""Which nodes can be linked to which: the two ends that a predicted link has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_outline import GraphOutline
from peg_core.graph.graph_store import GraphStore

IntArray = npt.NDArray[np.integer[Any]]
Nodes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Partners:
    """Anchors, and the nodes that each of them can be linked to.

    Where all nodes are of one kind every node is both, and no partner of itself.

    Args:
        first_anchor, last_anchor: The range of the anchors, without ``last_anchor``.
        first, last: The range of the partners, without ``last``.
        directed: Whether (anchor, partner) and (partner, anchor) are different links.
    """

    first_anchor: int
    last_anchor: int
    first: int
    last: int
    directed: bool = False

    @classmethod
    def of(cls, graph: GraphStore | GraphOutline, *, anchors: str | None = None) -> Self:
        """The ends of the links that are predicted in a graph.

        Args:
            anchors: The kind of the anchors; None: that of the source of a link.
        """
        if graph.relations is None:
            return cls(0, graph.num_nodes, 0, graph.num_nodes)
        source, target = graph.relations.source_nodes, graph.relations.target_nodes
        if anchors is not None and graph.relations.kind(anchors) == target:
            source, target = target, source
        return cls(source.start, source.stop, target.start, target.stop, graph.is_directed)

    @property
    def one_kind(self) -> bool:
        """Whether every anchor is a partner, too."""
        return (self.first_anchor, self.last_anchor) == (self.first, self.last)

    @property
    def both_ways(self) -> bool:
        """Whether a link makes each of its ends a partner of the other."""
        return self.one_kind and not self.directed

    @property
    def ordered(self) -> bool:
        """Whether a pair has a first end and a second one."""
        return not self.both_ways

    @property
    def num_pairs(self) -> int:
        """Pairs that might be links."""
        if not self.one_kind:
            return self.num_anchors * self.count
        return self.count * (self.count - 1) // (1 if self.directed else 2)

    @property
    def count(self) -> int:
        """Partners."""
        return self.last - self.first

    @property
    def num_anchors(self) -> int:
        return self.last_anchor - self.first_anchor

    def nodes(self) -> Nodes:
        """All partners."""
        return np.arange(self.first, self.last)

    def anchored(self, source: IntArray, target: IntArray) -> tuple[Nodes, Nodes]:
        """Links as (anchor, partner): turned round where need be.

        Both ways among one kind, unless links have a direction.
        """
        ends: tuple[Nodes, Nodes] = source.astype(np.int64), target.astype(np.int64)
        if self.both_ways:
            return np.concatenate(ends), np.concatenate(ends[::-1])
        if self.one_kind:
            return ends
        turned = (ends[0] < self.first_anchor) | (ends[0] >= self.last_anchor)
        return np.where(turned, ends[1], ends[0]), np.where(turned, ends[0], ends[1])

    def draw_pairs(self, count: int, *, rng: np.random.Generator) -> tuple[Nodes, Nodes]:
        """Random pairs, an end and itself among them; those without an order in ascending one.

        Each takes what the stream gives after the one before it.
        """
        if not self.one_kind:
            low, high = (self.first_anchor, self.first), (self.last_anchor, self.last)
            drawn = rng.integers(low, high, size=(count, 2))
        else:
            drawn = rng.integers(self.first, self.last, size=(count, 2))
        if self.both_ways:
            return drawn.min(axis=1), drawn.max(axis=1)
        return drawn[:, 0], drawn[:, 1]

    def all_pairs(self) -> tuple[Nodes, Nodes]:
        """Every pair that might be a link, once."""
        if self.both_ways:
            source, target = np.triu_indices(self.count, k=1)
            return source.astype(np.int64) + self.first, target.astype(np.int64) + self.first
        source = np.repeat(np.arange(self.first_anchor, self.last_anchor), self.count)
        target = np.tile(self.nodes(), self.num_anchors)
        return source[source != target], target[source != target]

    def partner_ranges(self, is_anchor: npt.NDArray[np.bool_]) -> tuple[Nodes, Nodes]:
        """The range of those an end might be linked to, [num_ends] each.

        Args:
            is_anchor: [num_ends], whether it is the anchor of its link, or the partner.
        """
        first = np.where(is_anchor, self.first, self.first_anchor)
        return first, np.where(is_anchor, self.last, self.last_anchor)


def known_partners(graph: GraphStore, node: int, *, either_way: bool = False) -> IntArray:
    """Nodes that a node has a link of the predicted relation with.

    Args:
        either_way: Where links have a direction: also those that lead to the node.
    """
    if graph.codes is None or graph.relations is None:
        return graph.neighbours(node)
    relations = graph.relations
    one_way = relations.has_reverses and not either_way
    bits = np.uint16(relations.link_bits[0]) if one_way else relations.link_mask
    codes = np.asarray(graph.codes[graph.indptr[node] : graph.indptr[node + 1]])
    return graph.neighbours(node)[codes & bits != 0]
