"""Whose lists are made: the nodes at one end of the links that are predicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from peg_core.errors import InputError, nearest_hint
from peg_core.graph.graph_outline import GraphOutline
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.graph_ids import GraphIds, KindIds
from peg_core.splits.partners import Partners

IntArray = npt.NDArray[np.integer[Any]]

# Stands for lists of either end.
BOTH = "both"


def chosen_kinds(ends: tuple[str, str] | None, wanted: str | None) -> list[str]:
    """The kinds whose lists are asked for; one that links do not have is refused.

    Args:
        ends: The kinds of the source and the target of a link; None where nodes have none.
        wanted: As `recommend.for` says.
    """
    if wanted is None:
        return list(ends or ())[:1]
    if ends is None:
        raise InputError(
            f"`recommend.for` is {wanted!r}, the graph has one kind of node without a name; leave "
            "it out"
        )
    source, target = ends
    if wanted == BOTH and source == target:
        raise InputError(
            f"`recommend.for` is both, links lead from {source!r} to {source!r}; leave it out"
        )
    if wanted not in (BOTH, source, target):
        raise InputError(
            f"`recommend.for` is {wanted!r}, links lead from {source!r} to {target!r}; name one of "
            f"them, or both{nearest_hint(wanted, ends)}"
        )
    return [source, target] if wanted == BOTH else [wanted]


@dataclass(frozen=True)
class ListSide:
    """Nodes that get lists, and those that can be on them.

    Args:
        partners: Both, as ranges of nodes.
        kind: Of the nodes that get lists; None where nodes have no kinds.
        turned: Whether they are the targets of links, not the sources.
    """

    partners: Partners
    kind: str | None = None
    turned: bool = False

    @classmethod
    def of(cls, graph: GraphStore | GraphOutline, wanted: str | None = None) -> list[Self]:
        """The sides that are asked for.

        Args:
            wanted: A kind of node, or :data:`BOTH`; None: the kind of the source of a link.
        """
        if graph.relations is None:
            chosen_kinds(None, wanted)
            return [cls(Partners.of(graph))]
        source, target = graph.relations.source_nodes.name, graph.relations.target_nodes.name
        return [
            cls(Partners.of(graph, anchors=kind), kind, kind != source)
            for kind in chosen_kinds((source, target), wanted)
        ]

    def rows(self, num_nodes: int) -> tuple[int, int] | None:
        """The nodes that can be on a list, first and last + 1; None where all can."""
        rows = self.partners.first, self.partners.last
        return None if rows == (0, num_nodes) else rows

    def holds(self, candidate: IntArray) -> npt.NDArray[np.bool_]:
        """Which nodes can be on a list, [num_candidates]."""
        held: npt.NDArray[np.bool_] = candidate >= self.partners.first
        return held & (candidate < self.partners.last)

    def ids(self, ids: GraphIds) -> tuple[KindIds, KindIds]:
        """The ids of nodes that get lists, and of those on them."""
        source, target = ids.ends
        return (target, source) if self.turned else (source, target)

    def links(self, nodes: IntArray, candidate: IntArray) -> tuple[IntArray, IntArray]:
        """Nodes and their candidates as source and target of a link, [num_pairs] each."""
        return (candidate, nodes) if self.turned else (nodes, candidate)
