"""Which nodes can be linked to which: the two ends that a predicted link has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

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
    """

    first_anchor: int
    last_anchor: int
    first: int
    last: int

    @classmethod
    def of(cls, graph: GraphStore, *, anchors: str | None = None) -> Self:
        """The ends of the links that are predicted in a graph.

        Args:
            anchors: The kind of the anchors; None: that of the source of a link.
        """
        if graph.relations is None:
            return cls(0, graph.num_nodes, 0, graph.num_nodes)
        source, target = graph.relations.source_nodes, graph.relations.target_nodes
        if anchors is not None and graph.relations.kind(anchors) == target:
            source, target = target, source
        return cls(source.start, source.stop, target.start, target.stop)

    @property
    def one_kind(self) -> bool:
        """Whether every anchor is a partner, too."""
        return (self.first_anchor, self.last_anchor) == (self.first, self.last)

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
        """Links as (anchor, partner): turned round where need be, both ways among one kind."""
        source, target = source.astype(np.int64), target.astype(np.int64)
        if self.one_kind:
            return np.concatenate([source, target]), np.concatenate([target, source])
        turned = (source < self.first_anchor) | (source >= self.last_anchor)
        return np.where(turned, target, source), np.where(turned, source, target)
