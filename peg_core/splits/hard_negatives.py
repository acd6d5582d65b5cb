"""Non-links that are hard to tell from links (HeaRT, Li et al. 2023).

For a link, one end is kept and the other replaced by nodes that heuristics on the training
graph put close to the kept end. Which nodes those are depends on the kept end alone, once
every known link of it is left out: so they are found once per node that has a test link.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import GraphStore
from peg_core.kernels.pagerank_push import RESTART, TOLERANCE, push
from peg_core.random_streams import random_stream
from peg_core.splits.pair_hash import pair_hash
from peg_core.splits.partners import Partners, known_partners

IntArray = npt.NDArray[np.integer[Any]]
Nodes = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
# Nodes close to an anchor by one heuristic, and how close.
Closeness = tuple[Nodes, npt.NDArray[np.floating[Any]]]

NO_NODE = -1
# Features are compared with this many nodes at most, drawn once.
FEATURE_POOL = 50_000
ANCHORS_PER_STEP = 256


@dataclass
class HardNegatives:
    """Finds non-links of nodes.

    Args:
        known: Every known edge, of all parts: no link of the predicted relation is ever returned,
            where links have a direction neither way round. Nodes are of the kind that the anchor
            can be linked to.
        train: The edges that the heuristics may see.
        features: [num_nodes, width], or None.
        count: Non-links of a node.
        seed: Of ties, and of the rest where heuristics find too few.
    """

    known: GraphStore
    train: GraphStore
    features: npt.NDArray[np.floating[Any]] | None
    count: int
    seed: int
    _scratch: _Scratch = field(init=False, repr=False)
    _partners: Partners = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._scratch = _Scratch.of(self.train.num_nodes)
        self._partners = Partners.of(self.known)

    def sample(self, anchors: IntArray) -> Nodes:
        """Non-neighbours of every anchor, hardest first, [num_anchors, count].

        A node is as hard as the best of its ranks by common neighbours, resource
        allocation, personalised PageRank and cosine of the features; equal scores share
        the worst rank. Nodes of which no heuristic knows anything fill up, at random;
        where an anchor has too few non-neighbours the row ends with ``NO_NODE``.
        """
        out = np.full((len(anchors), self.count), NO_NODE, dtype=np.int64)
        pool = self._feature_pool()
        for start in range(0, len(anchors), ANCHORS_PER_STEP):
            step = np.asarray(anchors[start : start + ANCHORS_PER_STEP], dtype=np.int64)
            alike = self._similarities(step, pool)
            for index, anchor in enumerate(step.tolist()):
                near = self._near(anchor)
                if alike is not None:
                    near.append((pool, alike[index]))
                out[start + index] = self._choose(anchor, near)
        return out

    def _near(self, anchor: int) -> list[Closeness]:
        """Nodes within reach in the training graph, by each heuristic."""
        s, graph = self._scratch, self.train
        count = _two_steps(graph.indptr, graph.indices, anchor, s.first, s.second, s.reached)
        nodes = s.reached[:count].copy()
        lists: list[Closeness] = [(nodes, s.first[nodes]), (nodes, s.second[nodes])]
        s.first[nodes] = s.second[nodes] = 0
        count = push(
            graph.indptr, graph.indices, anchor, RESTART, TOLERANCE,
            s.first, s.second, s.queue, s.waiting, s.reached,
        )  # fmt: skip
        nodes = s.reached[:count].copy()
        lists.append((nodes, s.first[nodes]))
        s.first[nodes] = s.second[nodes] = 0
        return lists

    def _feature_pool(self) -> Nodes:
        num_nodes = self.train.num_nodes
        if self.features is None or num_nodes <= FEATURE_POOL:
            return np.arange(num_nodes)
        rng = random_stream(seed=self.seed, purpose="feature pool")
        return np.sort(rng.choice(num_nodes, FEATURE_POOL, replace=False))

    def _similarities(self, anchors: Nodes, pool: Nodes) -> npt.NDArray[np.float32] | None:
        """Cosine of the features of anchors and pool, [num_anchors, num_pool]."""
        if self.features is None:
            return None
        return _unit_rows(self.features[anchors]) @ _unit_rows(self.features[pool]).T

    def _choose(self, anchor: int, lists: list[Closeness]) -> Nodes:
        """The hardest non-neighbours of one anchor, [count]."""
        blocked = self._scratch.waiting  # all false between pushes
        first_node, last_node = self._range_for(anchor)
        taken = np.append(known_partners(self.known, anchor, either_way=True), anchor)
        blocked[taken] = True
        ranked = []
        for found, near in lists:
            inside = (found >= first_node) & (found < last_node)
            ranked.append(_top_ranks(found[inside], near[inside], blocked, self.count))
        nodes = np.concatenate([found for found, _ in ranked])
        ranks = np.concatenate([rank for _, rank in ranked])
        tie = pair_hash(np.full(len(nodes), anchor), nodes, seed=self.seed, purpose="hard ties")
        order = np.lexsort((tie, ranks))
        _, first = np.unique(nodes[order], return_index=True)
        chosen = nodes[order][np.sort(first)][: self.count]
        blocked[chosen] = True
        rest = self._fill(anchor, blocked[first_node:last_node], self.count - len(chosen))
        blocked[taken] = False
        blocked[chosen] = False
        return np.concatenate([chosen, rest])

    def _range_for(self, anchor: int) -> tuple[int, int]:
        """The nodes that an anchor might be linked to."""
        p = self._partners
        is_source = p.first_anchor <= anchor < p.last_anchor
        return (p.first, p.last) if is_source else (p.first_anchor, p.last_anchor)

    def _fill(self, anchor: int, blocked: npt.NDArray[np.bool_], wanted: int) -> Nodes:
        """Nodes that are not blocked, at random, then ``NO_NODE``, [wanted].

        Args:
            blocked: Of all nodes that the anchor might be linked to.
        """
        if not wanted:
            return np.zeros(0, dtype=np.int64)
        first_node, _ = self._range_for(anchor)
        rng = random_stream(seed=self.seed, purpose="easy negatives", shard=anchor)
        free = len(blocked) - int(np.count_nonzero(blocked))
        if free <= 4 * wanted:
            found = rng.permutation(np.flatnonzero(~blocked))[:wanted]
        else:
            found = np.zeros(0, dtype=np.int64)
            while len(found) < wanted:
                drawn = rng.integers(0, len(blocked), size=2 * wanted)
                both = np.concatenate([found, drawn[~blocked[drawn]]])
                found = both[np.sort(np.unique(both, return_index=True)[1])][:wanted]
        found = found + first_node
        return np.append(found, np.full(wanted - len(found), NO_NODE, dtype=np.int64))


@dataclass(frozen=True)
class _Scratch:
    """Arrays over all nodes that are zero between two anchors, [num_nodes] each."""

    first: FloatArray
    second: FloatArray
    queue: Nodes
    reached: Nodes
    waiting: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, num_nodes: int) -> _Scratch:
        return cls(
            np.zeros(num_nodes),
            np.zeros(num_nodes),
            np.empty(num_nodes, dtype=np.int64),
            np.empty(num_nodes, dtype=np.int64),
            np.zeros(num_nodes, dtype=np.bool_),
        )


def _top_ranks(
    nodes: Nodes, near: npt.NDArray[Any], blocked: npt.NDArray[np.bool_], count: int
) -> tuple[Nodes, Nodes]:
    """The nodes of rank ``count`` or better and their ranks, equal scores at the worst rank."""
    keep = (near > 0) & ~blocked[nodes]
    nodes, near = nodes[keep], near[keep]
    ranks = len(near) - np.searchsorted(np.sort(near), near, side="left")
    # a tie that reaches beyond the count would be lost as a whole: its nodes stay, ranked last
    last = ranks[ranks > count].min(initial=len(ranks))
    return nodes[ranks <= last], ranks[ranks <= last]


def _unit_rows(rows: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    rows = rows.astype(np.float32)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


@numba.njit(cache=True, nogil=True)
def _two_steps(
    indptr: IntArray,
    indices: IntArray,
    anchor: int,
    common: FloatArray,
    allocated: FloatArray,
    reached: IntArray,
) -> int:
    """Common neighbours and resource allocation with all nodes; returns how many have any."""
    count = 0
    for middle in indices[indptr[anchor] : indptr[anchor + 1]]:
        share = 1.0 / (indptr[middle + 1] - indptr[middle])
        for node in indices[indptr[middle] : indptr[middle + 1]]:
            if common[node] == 0.0:
                reached[count] = node
                count += 1
            common[node] += 1.0
            allocated[node] += share
    return count
