"""The best partners of a node that it is not linked to yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import GraphStore
from peg_core.inference.conditions import ANYTHING, Conditions
from peg_core.inference.list_side import ListSide
from peg_core.inference.nearby_nodes import nearby_nodes
from peg_core.inference.nearby_partners import nearby_partners

if TYPE_CHECKING:
    from peg_core.inference.pair_scoring import PairScorer

IntArray = npt.NDArray[np.integer[Any]]
Nodes = npt.NDArray[np.int64]

# A node is compared with this many others at once, where it is compared with all.
NODES_PER_STEP = 2**20


class Searchable(Protocol):
    """Finds rows near others."""

    def search(self, rows: Nodes, *, count: int) -> Nodes:
        """About the nearest ``count`` rows of each, -1 where there are no more."""
        ...


class Recommendations(NamedTuple):
    """Rows ordered by node as asked, then by rank, which starts at 1; [num_rows] each."""

    row: Nodes  # of the node among those that were asked for
    rank: Nodes
    candidate: Nodes
    logit: npt.NDArray[np.float32]

    def some(self, kept: npt.NDArray[np.bool_]) -> Recommendations:
        """Some of the rows."""
        return Recommendations(
            self.row[kept], self.rank[kept], self.candidate[kept], self.logit[kept]
        )


@dataclass(frozen=True)
class Recommender:
    """Candidates from several sources, scored exactly.

    Args:
        scorer: The model's head.
        known: Every known edge: no link of its predicted relation is recommended.
        indexes: Of positions and embeddings.
        top_k: Candidates of a node that are returned.
        nearby: Candidates of a node from a few steps away.
        nearest: Candidates of a node from each index.
        side: Which nodes can be asked for, and which of them can be candidates.
        conditions: What is not recommended beside.
    """

    scorer: PairScorer
    known: GraphStore
    indexes: Sequence[Searchable]
    top_k: int
    nearby: int
    nearest: int
    side: ListSide
    conditions: Conditions = ANYTHING

    def recommend(self, nodes: IntArray) -> Recommendations:
        """The best ``top_k`` candidates of every node, fewer where there are not as many."""
        asked: npt.NDArray[np.int64] = np.asarray(nodes, dtype=np.int64)
        found = [self._nearby(asked)]
        found += [index.search(asked, count=self.nearest) for index in self.indexes]
        candidates = np.concatenate(found, axis=1)
        row = np.repeat(np.arange(len(asked)), candidates.shape[1])
        return self._best(asked, row, candidates.ravel())

    def _nearby(self, asked: Nodes) -> Nodes:
        graph, allowed = self.scorer.graph, self.conditions.allowed
        if graph.relations is None and allowed is None:
            return nearby_nodes(graph, self.known, asked, count=self.nearby)
        return nearby_partners(
            graph, self.known, asked, self.side, count=self.nearby, allowed=allowed
        )

    def exhaust(self, node: int) -> Recommendations:
        """The best of all partners: slow, to compare with."""
        asked, best = np.array([node]), np.zeros(0, dtype=np.int64)
        last = self.side.partners.last
        for start in range(self.side.partners.first, last, NODES_PER_STEP):
            step = np.arange(start, min(start + NODES_PER_STEP, last))
            candidates = np.concatenate([best, step])
            found = self._best(asked, np.zeros(len(candidates), dtype=np.int64), candidates)
            best = found.candidate
        return found

    def _best(self, nodes: Nodes, row: Nodes, candidate: Nodes) -> Recommendations:
        """Score the distinct pairs that may be new links and keep the best of every node."""
        kept = self.side.holds(candidate) & (candidate != nodes[row])
        key = np.unique(row[kept] * self.known.num_nodes + candidate[kept])
        row, candidate = np.divmod(key, self.known.num_nodes)
        ends = self.side.links(nodes[row], candidate)
        new = ~self.known.contains_link(*ends)
        new &= self.conditions.permit(*ends, candidate, num_nodes=self.known.num_nodes)
        row, candidate = row[new], candidate[new]
        logit = self.scorer.logits(*self.side.links(nodes[row], candidate))
        order = np.lexsort((candidate, -logit, row))
        row, candidate, logit = row[order], candidate[order], logit[order]
        first = np.searchsorted(row, row, side="left")
        rank = np.arange(len(row)) - first + 1
        top = rank <= self.top_k
        return Recommendations(row[top], rank[top], candidate[top], logit[top])


def recall(found: Recommendations, exact: Recommendations) -> float:
    """Share of the exact best that were found; candidates of equal score replace each other.

    Both are of one node.
    """
    if not len(exact.logit):
        return 1.0
    as_good = found.logit >= exact.logit[-1]
    return float(min(as_good.sum(), len(exact.logit)) / len(exact.logit))
