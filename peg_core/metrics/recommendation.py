"""How recommenders are measured: lists of partners of nodes against their held-out ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.integer[Any]]
Nodes = npt.NDArray[np.int64]
PerNode = dict[str, npt.NDArray[np.float64]]

# What fills up a list of fewer partners than were asked for.
NOTHING = -1


@dataclass(frozen=True)
class Relevant:
    """The held-out partners of some nodes.

    Args:
        nodes: [num_nodes], sorted.
        row: [num_links] which of the nodes a link is of.
        partner: [num_links].
    """

    nodes: Nodes
    row: Nodes
    partner: Nodes

    @classmethod
    def of(cls, anchors: IntArray, partners: IntArray) -> Self:
        """From links, [num_links] each; a link that is listed twice counts once."""
        links = np.unique(np.stack([anchors, partners]).astype(np.int64), axis=1)
        nodes, row = np.unique(links[0], return_inverse=True)
        return cls(nodes, row, links[1])

    def some(self, chosen: IntArray) -> Relevant:
        """Of some of the nodes only, by their rows in order."""
        kept = np.isin(self.row, chosen)
        row = np.searchsorted(chosen, self.row[kept])
        return Relevant(self.nodes[chosen], row, self.partner[kept])

    @property
    def counts(self) -> Nodes:
        """Held-out partners of every node, [num_nodes]."""
        return np.bincount(self.row, minlength=len(self.nodes))

    def hits(self, lists: IntArray) -> npt.NDArray[np.bool_]:
        """Which entries of the lists are held-out partners, [num_nodes, length]."""
        wide = 1 + int(max(lists.max(initial=0), self.partner.max(initial=0)))
        keys = np.arange(len(lists))[:, None] * wide + lists
        return np.isin(keys, self.row * wide + self.partner) & (lists != NOTHING)


def node_metrics(lists: IntArray, relevant: Relevant, *, top_k: Sequence[int]) -> PerNode:
    """Recall@K, Precision@K, NDCG@K and hit rate of every node, [num_nodes] each.

    - ``recall@K``: share of its held-out partners among the first K of its list.
    - ``precision@K``: share of the K that are.
    - ``ndcg@K``: sum of 1 / log2(1 + rank) of those, over that of the best possible list.
    - ``hit_rate@K``: 1 where there is at least one.

    Args:
        lists: [num_nodes, length], best first, at least as long as the largest K.
        relevant: The held-out partners of the same nodes.
        top_k: The K.
    """
    hits, counts = relevant.hits(lists), relevant.counts
    found: PerNode = {}
    for k in top_k:
        first = hits[:, :k]
        gains = 1 / np.log2(2 + np.arange(k))
        best = np.concatenate([[0.0], np.cumsum(gains)])[np.minimum(counts, k)]
        number = first.sum(axis=1)
        found[f"recall@{k}"] = number / counts
        found[f"precision@{k}"] = number / k
        found[f"ndcg@{k}"] = first @ gains[: first.shape[1]] / best
        found[f"hit_rate@{k}"] = (number > 0).astype(np.float64)
    return found


def list_metrics(
    lists: IntArray, degrees: IntArray, *, partners: int, top_k: Sequence[int]
) -> dict[str, float]:
    """What is recommended at all, whether right or wrong.

    - ``coverage@K``: share of all partners that are in the first K of any list.
    - ``popularity@K``: mean degree of what is there.

    Args:
        lists: [num_nodes, length].
        degrees: Of all nodes, in the training graph.
        partners: How many nodes could have been recommended.
        top_k: The K.
    """
    found = {}
    for k in top_k:
        named = lists[:, :k][lists[:, :k] != NOTHING]
        found[f"coverage@{k}"] = len(np.unique(named)) / partners
        found[f"popularity@{k}"] = float(degrees[named].mean()) if len(named) else 0.0
    return found
