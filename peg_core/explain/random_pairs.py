"""Random pairs, which every pair is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.explain.head_inputs import head_inputs
from peg_core.graph.ids.graph_ids import GraphIds
from peg_core.inference.pair_scoring import PairScorer
from peg_core.random_streams import random_stream

Array = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

NUM_PAIRS = 10_000
# Rows of vectors that are compared together.
ROWS = 4_096


@dataclass(frozen=True)
class RandomPairs:
    """Pairs of nodes that a predicted link may join, drawn at random; few of them are links.

    Args:
        scorer: The model and its graph.
        features: [num_nodes, width], or None.
        source, target: [num_pairs] nodes.
    """

    scorer: PairScorer
    features: npt.NDArray[Any] | None
    source: IntArray
    target: IntArray

    @classmethod
    def draw(
        cls,
        scorer: PairScorer,
        ids: GraphIds,
        features: npt.NDArray[Any] | None,
        *,
        seed: int,
        count: int = NUM_PAIRS,
    ) -> RandomPairs:
        """Different nodes of the kinds of both ends."""
        rng = random_stream(seed=seed, purpose="explained pairs")
        ends = [rng.integers(kind.first, kind.stop, size=count) for kind in ids.ends]
        apart = ends[0] != ends[1]
        return cls(scorer, features, ends[0][apart], ends[1][apart])

    @cached_property
    def baseline(self) -> Array:
        """The average of what the head reads of them, [num_inputs]."""
        mean: Array = head_inputs(self.scorer, self.source, self.target).mean(axis=0)
        return mean

    @cached_property
    def distances(self) -> list[Array]:
        """Distances in every encoding, ascending."""
        ends = self.source, self.target
        return [np.sort(distances(z, *ends)) for z in self.scorer.positions]

    @cached_property
    def similarities(self) -> Array:
        """Cosines of the features, ascending; none where there are no features."""
        if self.features is None:
            return np.zeros(0)
        return np.sort(cosines(self.features, self.source, self.target))

    def closer_than(self, encoding: int, found: Array) -> Array:
        """The share of the random pairs that lie further apart, for each distance."""
        known = self.distances[encoding]
        return 1 - np.searchsorted(known, found, side="right") / max(1, len(known))

    def less_alike(self, found: Array) -> Array:
        """The share of the random pairs whose features are less alike, for each cosine."""
        known = self.similarities
        return np.searchsorted(known, found, side="left") / max(1, len(known))


def distances(z: npt.NDArray[Any], source: IntArray, target: IntArray) -> Array:
    """Euclidean distances of rows, [num_pairs]."""
    out = np.empty(len(source))
    for start in range(0, len(source), ROWS):
        part = slice(start, start + ROWS)
        apart = z[source[part]].astype(np.float64) - z[target[part]]
        out[part] = np.linalg.norm(apart, axis=1)
    return out


def cosines(x: npt.NDArray[Any], source: IntArray, target: IntArray) -> Array:
    """Cosines of rows, [num_pairs]; 0 where a row is all zeros."""
    out = np.zeros(len(source))
    for start in range(0, len(source), ROWS):
        part = slice(start, start + ROWS)
        first, second = (x[end[part]].astype(np.float64) for end in (source, target))
        lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
        inner = (first * second).sum(axis=1)
        out[part] = np.divide(inner, lengths, out=np.zeros(len(inner)), where=lengths > 0)
    return out
