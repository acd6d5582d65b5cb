"""Explains scores of a model on the graph that it embedded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.explain.attribution import attribute
from peg_core.explain.explanation import Closeness, CommonNeighbour, PairExplanation, Part
from peg_core.explain.head_inputs import COMMON, head_inputs, input_parts
from peg_core.explain.random_pairs import RandomPairs, cosines, distances
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.graph_ids import GraphIds
from peg_core.graph.node_features import NodeFeatures
from peg_core.inference.pair_scoring import PairScorer

IntArray = npt.NDArray[np.int64]
Array = npt.NDArray[np.float64]

# Common neighbours that are listed of a pair.
MOST_COMMON = 10
# Pairs that are explained together.
PAIRS_PER_STEP = 1_024
# Kinds of features that say something of a node; columns of the others stand for it.
TOLD_KINDS = ("node", "node+positional")


@dataclass(frozen=True)
class PairExplainer:
    """What it takes to explain scores.

    Args:
        scorer: The model over embeddings, positions and graph.
        ids: Of the nodes.
        encodings: What every encoding is called.
        features: What the model reads of the nodes.
        line: Slope and intercept from a logit to that of the chance; None: not calibrated.
        seed: Of the random pairs.
        most_common: Common neighbours that are listed.
    """

    scorer: PairScorer
    ids: GraphIds
    encodings: Sequence[str]
    features: NodeFeatures | None = None
    line: tuple[float, float] | None = None
    seed: int = 0
    most_common: int = MOST_COMMON

    def with_line(self, line: tuple[float, float]) -> PairExplainer:
        """The same with another calibration, such as for another share of links."""
        return replace(self, line=line)

    @cached_property
    def random_pairs(self) -> RandomPairs:
        """What every pair is compared with; the same for all."""
        return RandomPairs.draw(self.scorer, self.ids, self._table, seed=self.seed)

    @cached_property
    def _table(self) -> npt.NDArray[Any] | None:
        known = self.features is not None and self.features.kind in TOLD_KINDS
        return self.features.table if known and self.features is not None else None

    def explain(self, source: IntArray, target: IntArray) -> list[PairExplanation]:
        """The reasons for the scores of some pairs.

        Args:
            source, target: [num_pairs] nodes.
        """
        found: list[PairExplanation] = []
        for start in range(0, len(source), PAIRS_PER_STEP):
            part = slice(start, start + PAIRS_PER_STEP)
            found += self._explain(np.asarray(source[part]), np.asarray(target[part]))
        return found

    def _explain(self, source: IntArray, target: IntArray) -> list[PairExplanation]:
        scorer, graph = self.scorer, self.scorer.graph
        logits = scorer.logits(source, target).astype(np.float64)
        parts, baseline = self._parts(source, target)
        closeness = self._closeness(source, target)
        alike = None if self._table is None else cosines(self._table, source, target)
        less = None if alike is None else self.random_pairs.less_alike(alike)
        linked = graph.contains_link(source, target)
        names = [self.ids.source.take(source).to_pylist(), self.ids.target.take(target).to_pylist()]
        found = []
        for i, (u, v) in enumerate(zip(source.tolist(), target.tolist(), strict=True)):
            num_common, common = self._common(u, v)
            found.append(
                PairExplanation(
                    source=names[0][i],
                    target=names[1][i],
                    linked=bool(linked[i]),
                    score=self._score(float(logits[i])),
                    logit=float(logits[i]),
                    baseline=baseline,
                    parts=parts[i],
                    degrees=(len(graph.neighbours(u)), len(graph.neighbours(v))),
                    num_common=num_common,
                    common=common,
                    encodings=[each[i] for each in closeness],
                    feature_similarity=None if alike is None else float(alike[i]),
                    features_closer_than=None if less is None else float(less[i]),
                    same_component=bool(scorer.components[u] == scorer.components[v]),
                )
            )
        return found

    def _parts(self, source: IntArray, target: IntArray) -> tuple[list[list[Part]], float]:
        """What each part of the head's input adds, the largest first, and the baseline's logit."""
        head, baseline = self.scorer.model.head, self.random_pairs.baseline
        inputs = head_inputs(self.scorer, source, target)
        made = attribute(head, inputs, baseline, num_encodings=len(self.scorer.positions))
        columns = np.array(input_parts(head, self.encodings))
        if (stack := self.scorer.stack) is not None:
            first = int(np.flatnonzero(columns == COMMON)[0])
            counts = slice(first, first + len(stack.counts))
            made = made.stacked(stack, inputs[:, counts], baseline[counts], first)
        names = list(dict.fromkeys(columns.tolist()))
        sums = np.stack([made.added[:, columns == name].sum(axis=1) for name in names], axis=1)
        read = np.flatnonzero((sums != 0).any(axis=0))  # a head need not read everything
        rows = []
        for row in sums:
            order = sorted(read, key=lambda column: -abs(row[column]))
            rows.append([Part(names[column], float(row[column])) for column in order])
        return rows, made.baseline

    def _closeness(self, source: IntArray, target: IntArray) -> list[list[Closeness]]:
        """Of every encoding, of every pair."""
        found = []
        for number, (name, z) in enumerate(zip(self.encodings, self.scorer.positions, strict=True)):
            apart = distances(z, source, target)
            shares = self.random_pairs.closer_than(number, apart)
            pairs = zip(apart.tolist(), shares.tolist(), strict=True)
            found.append([Closeness(name, distance, share) for distance, share in pairs])
        return found

    def _common(self, u: int, v: int) -> tuple[int, list[CommonNeighbour]]:
        """How many common neighbours there are, and those of smallest degree."""
        graph = self.scorer.graph
        nodes = shared = common_neighbours(graph, u, v)
        degrees = np.asarray(graph.indptr[nodes + 1] - graph.indptr[nodes])
        order = np.lexsort([nodes, degrees])[: self.most_common]
        nodes, degrees = nodes[order], degrees[order]
        if not len(nodes):
            return 0, []
        kinds = self.ids.names(nodes)
        weights = [_weights(graph, end, nodes) for end in (u, v)]
        listed = zip(
            self.ids.take(nodes).to_pylist(),
            [None] * len(nodes) if kinds is None else kinds.to_pylist(),
            degrees.tolist(),
            *weights,
            strict=True,
        )
        return len(shared), [CommonNeighbour(*each) for each in listed]

    def _score(self, logit: float) -> float | None:
        if self.line is None:
            return None
        slope, intercept = self.line
        return float(1 / (1 + np.exp(-np.clip(slope * logit + intercept, -700, 700))))


def distinct_names(kinds: Sequence[str]) -> list[str]:
    """What encodings are called: by their kinds, numbered where two are of one kind."""
    return [
        f"{kind} {number}" if kinds.count(kind) > 1 else kind
        for number, kind in enumerate(kinds, start=1)
    ]


def common_neighbours(graph: GraphStore, u: int, v: int) -> IntArray:
    """The neighbours that two nodes share, ascending; the shorter list is looked up."""
    short, long = sorted((graph.neighbours(u), graph.neighbours(v)), key=len)
    if not len(long):
        return np.zeros(0, dtype=np.int64)
    found = np.minimum(np.searchsorted(long, short), len(long) - 1)
    shared = short[long[found] == short]
    return np.asarray(shared, dtype=np.int64)


def _weights(graph: GraphStore, node: int, neighbours: IntArray) -> list[float | None]:
    """Of the edges from a node to some of its neighbours; None where edges have none."""
    if graph.weights is None:
        return [None] * len(neighbours)
    places = graph.indptr[node] + np.searchsorted(graph.neighbours(node), neighbours)
    return [float(weight) for weight in graph.weights[places]]
