"""node2vec."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, get_args

from peg_core.encoding.encoder import Encoding, ResumableEncoder
from peg_core.encoding.parameter_checks import (
    require_at_least,
    require_choice,
    require_encodable,
    require_positive,
)
from peg_core.encoding.row_length import Rows
from peg_core.encoding.walks.random_walks import WalkRule
from peg_core.encoding.walks.walk_encoding import encode_by_walks
from peg_core.encoding.walks.walk_training import Negatives, SkipGram
from peg_core.graph.graph_store import GraphStore


@dataclass(frozen=True)
class Node2Vec(ResumableEncoder):
    """Place nodes by the company they keep on walks that remember one step.

    Grover, Leskovec: node2vec, 2016. From v, reached from t, a walk goes on to x with
    probability in proportion to the weight of the edge, times 1/p for x = t, 1 for a neighbour
    of t, and 1/q otherwise. Drawn by rejection: no tables per edge. With p = q = 1 this is
    DeepWalk. Isolated nodes are placed at the origin.

    Args:
        dimensions: Columns of the positions.
        p: Large values keep a walk from turning back at once.
        q: Small values lead away from where the walk came from, large ones keep it near.
        window: Largest distance on a walk at which two nodes are a pair.
        rows: "unit" scales every position to length 1, "plain" does not.
        walks: Walks from every node, which is also the number of passes.
        walk_length: Nodes of a walk.
        negatives: Noise is drawn for every pair ("standard"), or once for a window ("shared"),
            which is faster and a little worse.
        negative_count: Noise pairs per pair.
        learning_rate: At the beginning; it falls linearly.
    """

    version: ClassVar[int] = 2

    dimensions: int = 128
    p: float = 1.0
    q: float = 1.0
    window: int = 10
    rows: Rows = "unit"
    walks: int = 10
    walk_length: int = 80
    negatives: Negatives = "standard"
    negative_count: int = 5
    learning_rate: float = 0.025

    def __post_init__(self) -> None:
        require_at_least(self, ("dimensions", "window", "walks", "negative_count"), 1)
        require_at_least(self, ("walk_length",), 2)
        require_positive(self, ("p", "q", "learning_rate"))
        require_choice(self, "rows", get_args(Rows))
        require_choice(self, "negatives", get_args(Negatives))

    @property
    def skip_gram(self) -> SkipGram:
        return SkipGram(
            dimensions=self.dimensions,
            passes=self.walks,
            window=self.window,
            negatives=self.negative_count,
            shared=self.negatives == "shared",
            learning_rate=self.learning_rate,
        )

    @property
    def walk_rule(self) -> WalkRule:
        return WalkRule(self.walk_length, back=1 / self.p, away=1 / self.q)

    def solve(self, graph: GraphStore, *, seed: int, checkpoint: Path | None = None) -> Encoding:
        """Positions, [num_nodes, dimensions], and the loss of every pass."""
        require_encodable(graph)
        return encode_by_walks(
            graph, self.skip_gram, self.walk_rule, rows=self.rows, seed=seed, folder=checkpoint
        )
