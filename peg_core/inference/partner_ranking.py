"""The best of all partners of nodes: every one is scored, none is left to an index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import GraphStore
from peg_core.metrics.recommendation import NOTHING
from peg_core.random_streams import random_stream
from peg_core.splits.partners import Partners, known_partners

if TYPE_CHECKING:
    from peg_core.inference.pair_scoring import PairScorer

IntArray = npt.NDArray[np.integer[Any]]
FloatArray = npt.NDArray[np.float32]
# Scores of nodes with the partners first .. last, [num_nodes, last - first].
Scores = Callable[[IntArray, int, int], FloatArray]

# Scores in memory at a time, 64 MB.
MOST_SCORES = 2**24
# Pairs that are scored in all, above which nodes are sampled: products of matrices are cheap.
MOST_PRODUCTS, MOST_PAIRS = 2**36, 2**27
FEWEST_NODES = 100


@dataclass(frozen=True)
class PartnerRanking:
    """Ranks all partners of a node that it is not known to have.

    Args:
        partners: Who can be recommended.
        known: Graphs whose links are not.
        scores: What ranks.
        most_pairs: Scored in all.
    """

    partners: Partners
    known: Sequence[GraphStore]
    scores: Scores
    most_pairs: int = MOST_PRODUCTS

    @classmethod
    def by_model(cls, scorer: PairScorer, known: Sequence[GraphStore], partners: Partners) -> Self:
        """By a model: one matrix product where its head is an inner product, else pair by pair."""
        weights = _inner_product(scorer)
        if weights is None:
            return cls(partners, known, _pairwise(scorer), MOST_PAIRS)
        return cls(partners, known, _products(scorer, weights))

    @classmethod
    def by_popularity(
        cls, graph: GraphStore, known: Sequence[GraphStore], partners: Partners
    ) -> Self:
        """By the number of links, the same for every node."""
        links = popularity(graph)

        def scores(nodes: IntArray, first: int, last: int) -> FloatArray:
            counts = links[first:last].astype(np.float32)
            return np.broadcast_to(counts, (len(nodes), last - first))

        return cls(partners, known, scores)

    def sample(self, count: int, *, seed: int, most_pairs: int | None = None) -> IntArray:
        """Which of so many nodes are ranked: all, or as many as may be, drawn at random."""
        most = (most_pairs or self.most_pairs) // max(1, self.partners.count)
        most = max(FEWEST_NODES, most)
        if count <= most:
            return np.arange(count)
        rng = random_stream(seed=seed, purpose="ranked nodes")
        return np.sort(rng.choice(count, most, replace=False))

    def lists(self, nodes: IntArray, top_k: int) -> npt.NDArray[np.int64]:
        """The best partners of every node, best first, [num_nodes, top_k]; -1 where none is left.

        Of equal scores the lower number comes first.
        """
        width = min(self.partners.count, MOST_SCORES)
        step = max(1, MOST_SCORES // width)
        found = [np.zeros((0, top_k), dtype=np.int64)]
        for start in range(0, len(nodes), step):
            some = nodes[start : start + step]
            best = np.full((len(some), 0), NOTHING, dtype=np.int64)
            score = np.zeros((len(some), 0), dtype=np.float32)
            for first in range(self.partners.first, self.partners.last, width):
                last = min(first + width, self.partners.last)
                candidate, own = _best(self._allowed(some, first, last), top_k)
                best = np.concatenate([best, candidate + first], axis=1)
                score = np.concatenate([score, own], axis=1)
            order = np.argsort(-score, axis=1, kind="stable")[:, :top_k]
            best = np.take_along_axis(best, order, axis=1)
            score = np.take_along_axis(score, order, axis=1)
            out = np.full((len(some), top_k), NOTHING, dtype=np.int64)
            out[:, : best.shape[1]] = np.where(np.isneginf(score), NOTHING, best)
            found.append(out)
        return np.concatenate(found)

    def _allowed(self, nodes: IntArray, first: int, last: int) -> FloatArray:
        """Scores of some partners; minus infinity for known ones and for the node itself."""
        scores = np.array(self.scores(nodes, first, last), dtype=np.float32)
        for row, node in enumerate(nodes.tolist()):
            for graph in self.known:
                linked = known_partners(graph, node)
                scores[row, linked[(linked >= first) & (linked < last)] - first] = -np.inf
            if first <= node < last:
                scores[row, node - first] = -np.inf
        return scores


def popularity(graph: GraphStore) -> IntArray:
    """Predicted links of every node, of directed ones those that lead to it, [num_nodes]."""
    if graph.codes is None or graph.relations is None:
        return graph.degrees
    arriving: IntArray = graph.directed_degrees[1]
    return arriving


def _best(scores: FloatArray, top_k: int) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """Columns and scores of the best of every row, by column where they are equal."""
    count = min(top_k, scores.shape[1])
    limit = -np.partition(-scores, count - 1, axis=1)[:, count - 1 : count]
    order = np.empty((len(scores), count), dtype=np.int64)
    for row, values in enumerate(scores):
        some = np.flatnonzero(values >= limit[row])
        order[row] = some[np.argsort(-values[some], kind="stable")[:count]]
    return order, np.take_along_axis(scores, order, axis=1)


def _inner_product(scorer: PairScorer) -> FloatArray | None:
    """The weights of a head that is an inner product of the embeddings; None for any other."""
    from peg_core.inference.folded_head import fold_head

    if scorer.stack is not None:
        return None
    width = scorer.embeddings.shape[1]
    head = fold_head(scorer.model.head, hidden=width, num_encodings=len(scorer.positions))
    if head is None or not head.is_linear or head.directed:
        return None
    if head.reads_structure or head.reads_positions(width):
        return None
    weights: FloatArray = head.inner[:width, 0]
    return weights


def _products(scorer: PairScorer, weights: FloatArray) -> Scores:
    def scores(nodes: IntArray, first: int, last: int) -> FloatArray:
        own = scorer.embeddings[nodes].astype(np.float32) * weights
        others = np.asarray(scorer.embeddings[first:last], dtype=np.float32)
        return np.asarray(own @ others.T, dtype=np.float32)

    return scores


def _pairwise(scorer: PairScorer) -> Scores:
    def scores(nodes: IntArray, first: int, last: int) -> FloatArray:
        target = np.arange(first, last)
        source = np.repeat(np.asarray(nodes, dtype=np.int64), len(target))
        logits = scorer.logits(source, np.tile(target, len(nodes)))
        return logits.reshape(len(nodes), len(target))

    return scores
