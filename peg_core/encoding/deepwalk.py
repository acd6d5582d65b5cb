"""DeepWalk, trained on walks or factorised."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from peg_core.encoding.encoder import Encoding, ResumableEncoder
from peg_core.encoding.parameter_checks import (
    require_at_least,
    require_choice,
    require_encodable,
    require_positive,
)
from peg_core.encoding.row_length import Rows, place_rows
from peg_core.encoding.walks.netmf import exact_matrix
from peg_core.encoding.walks.netsmf import sampled_matrix
from peg_core.encoding.walks.random_walks import WalkRule
from peg_core.encoding.walks.randomised_svd import SparseMatrix, leading_eigenpairs
from peg_core.encoding.walks.spectral_propagation import propagate
from peg_core.encoding.walks.walk_encoding import NO_EDGES, encode_by_walks
from peg_core.encoding.walks.walk_training import Negatives, SkipGram
from peg_core.graph.graph_store import GraphStore
from peg_core.random_streams import random_stream

Solver = Literal["auto", "sgns", "netmf", "netsmf"]

# Up to here all pairs of nodes are held; measured, docs/encodings.md.
LARGEST_EXACT = 20_000
# The matrix is log(ratio / noise pairs); 1 predicts links best in all its forms.
MATRIX_NEGATIVES = 1


@dataclass(frozen=True)
class DeepWalk(ResumableEncoder):
    """Place nodes by the company they keep on random walks.

    Perozzi, Al-Rfou, Skiena: DeepWalk, 2014, with negative sampling (solver "sgns"), or the
    factorisation of the matrix that this training approximates: exact ("netmf") or sampled
    ("netsmf"), both deterministic. Isolated nodes are placed at the origin.

    Args:
        dimensions: Columns of the positions.
        solver: "auto" takes "netmf" up to 20,000 nodes and "netsmf" above.
        window: Largest distance on a walk at which two nodes are a pair.
        rows: "unit" scales every position to length 1, "plain" does not.
        samples: "netsmf": walks per direction of an edge; more are closer to "netmf".
        propagate: "netmf" and "netsmf": smooth the positions along the graph (ProNE).
        walks: "sgns": walks from every node, which is also the number of passes.
        walk_length: "sgns": nodes of a walk.
        negatives: "sgns": noise is drawn for every pair ("standard"), or once for a window
            ("shared"), which is faster and a little worse.
        negative_count: "sgns": noise pairs per pair.
        learning_rate: "sgns": at the beginning; it falls linearly.
    """

    version: ClassVar[int] = 2

    dimensions: int = 128
    solver: Solver = "auto"
    window: int = 10
    rows: Rows = "unit"
    samples: int = 1
    propagate: bool = True
    walks: int = 10
    walk_length: int = 80
    negatives: Negatives = "standard"
    negative_count: int = 5
    learning_rate: float = 0.025

    def __post_init__(self) -> None:
        names = ("dimensions", "window", "samples", "walks", "negative_count")
        require_at_least(self, names, 1)
        require_at_least(self, ("walk_length",), 2)
        require_positive(self, ("learning_rate",))
        require_choice(self, "solver", get_args(Solver))
        require_choice(self, "rows", get_args(Rows))
        require_choice(self, "negatives", get_args(Negatives))

    def choose_solver(self, num_nodes: int) -> str:
        """The solver for a graph of this size."""
        if self.solver != "auto":
            return self.solver
        return "netmf" if num_nodes <= LARGEST_EXACT else "netsmf"

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
        return WalkRule(self.walk_length)

    def solve(self, graph: GraphStore, *, seed: int, checkpoint: Path | None = None) -> Encoding:
        """Positions, [num_nodes, dimensions]; missing columns are zero and said in the report."""
        require_encodable(graph)
        solver = self.choose_solver(graph.num_nodes)
        if solver == "sgns":
            return encode_by_walks(
                graph, self.skip_gram, self.walk_rule, rows=self.rows, seed=seed, folder=checkpoint
            )
        if solver == "netmf":
            matrix = exact_matrix(graph, window=self.window, negatives=MATRIX_NEGATIVES)
        else:
            matrix = sampled_matrix(
                graph,
                window=self.window,
                samples=self.samples,
                negatives=MATRIX_NEGATIVES,
                seed=seed,
            )
        return self._factorise(graph, matrix, solver, seed)

    def _factorise(
        self, graph: GraphStore, matrix: SparseMatrix, solver: str, seed: int
    ) -> Encoding:
        """Positions ``U sqrt(S)`` of the matrix ``U S V^T``."""
        wanted = min(self.dimensions, graph.num_nodes)
        stream = random_stream(seed=seed, purpose="randomised svd")
        values, vectors = leading_eigenpairs(matrix, wanted, stream=stream)
        table = vectors * np.sqrt(np.abs(values)).astype(np.float32)
        if self.propagate:
            table = propagate(graph, table)
        positions = place_rows(table, graph, dimensions=self.dimensions, rows=self.rows)
        entries = len(matrix.values)
        return Encoding(positions, self.describe(solver, entries, np.abs(values), graph.num_nodes))

    def describe(
        self, solver: str, entries: int, singular_values: Any, num_nodes: int
    ) -> dict[str, Any]:
        """JSON-ready facts about a factorisation."""
        warnings = []
        if self.dimensions > num_nodes:
            warnings.append(
                f"{self.dimensions} dimensions were asked for, the matrix of {num_nodes:,} nodes "
                f"has {num_nodes:,}; the rest are zero"
            )
        if entries == 0:
            warnings.append(NO_EDGES)
        return {
            "solver": solver,
            "rows": self.rows,
            "propagate": self.propagate,
            "matrix_entries": entries,
            "singular_values": [float(value) for value in singular_values],
            "warnings": warnings,
        }
