"""LINE: positions from edges alone."""

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
from peg_core.encoding.walks.walk_encoding import describe_training, encode_without_edges
from peg_core.encoding.walks.walk_training import (
    EdgeTraining,
    SkipGram,
    TrainingState,
    start_tables,
    train_passes,
)
from peg_core.graph.graph_store import FloatArray, GraphStore

Order = Literal["first", "second", "both"]

PASSES = 10


@dataclass(frozen=True)
class Line(ResumableEncoder):
    """Place nodes by their edges (first order) or by whom their edges lead to (second order).

    Tang et al., LINE: Large-scale information network embedding, 2015. Edges are drawn by
    weight and trained on with negative sampling. Isolated nodes are placed at the origin.

    Args:
        dimensions: Columns of the positions.
        order: "first": neighbours are close; "second": nodes with common neighbours are
            close; "both": half of the columns each.
        rows: "unit" scales every position to length 1, and with "both" each of its halves to
            the same length; "plain" does not.
        samples: Draws per edge.
        negative_count: Noise pairs per pair.
        learning_rate: At the beginning; it falls linearly.
    """

    version: ClassVar[int] = 2

    dimensions: int = 128
    order: Order = "both"
    rows: Rows = "unit"
    samples: int = 300
    negative_count: int = 5
    learning_rate: float = 0.025

    def __post_init__(self) -> None:
        require_at_least(self, ("dimensions", "samples", "negative_count"), 1)
        require_positive(self, ("learning_rate",))
        require_choice(self, "order", get_args(Order))
        require_choice(self, "rows", get_args(Rows))
        if self.order == "both" and self.dimensions == 1:
            raise ValueError("dimensions is 1, order 'both' needs at least 2")

    def solve(self, graph: GraphStore, *, seed: int, checkpoint: Path | None = None) -> Encoding:
        """Positions, [num_nodes, dimensions], and the loss of every pass."""
        require_encodable(graph)
        if graph.num_edges == 0:
            return encode_without_edges(graph, self.dimensions)
        halves: list[FloatArray] = []
        reports: dict[str, Any] = {}
        for order, dimensions in self._orders().items():
            folder = None if checkpoint is None else checkpoint / order
            settings = SkipGram(
                dimensions=dimensions,
                passes=PASSES,
                negatives=self.negative_count,
                learning_rate=self.learning_rate,
            )
            state = self._train(graph, settings, order, seed, folder)
            halves.append(
                place_rows(state.tables.inputs, graph, dimensions=dimensions, rows=self.rows)
            )
            reports[order] = describe_training(settings, state, self.rows)
        return self._join(halves, reports)

    def _orders(self) -> dict[str, int]:
        """The orders to train, with their dimensions."""
        if self.order != "both":
            return {self.order: self.dimensions}
        return {"first": self.dimensions // 2, "second": self.dimensions - self.dimensions // 2}

    def _train(
        self, graph: GraphStore, settings: SkipGram, order: str, seed: int, folder: Path | None
    ) -> TrainingState:
        draws = max(graph.num_edges * self.samples // PASSES, 1)
        training = EdgeTraining(graph, settings, draws, seed=seed)
        state = TrainingState.load(folder) if folder is not None else None
        if state is None:
            tables = start_tables(
                graph.num_nodes, settings.dimensions, seed=seed, one_table=order == "first"
            )
            state = TrainingState(tables)
        return train_passes(training.run_pass, state, PASSES, folder)

    def _join(self, halves: list[FloatArray], reports: dict[str, Any]) -> Encoding:
        positions = np.concatenate(halves, axis=1)
        if self.rows == "unit":
            positions /= np.float32(np.sqrt(len(halves)))
        threads = next(iter(reports.values()))["threads"]
        losses = {order: report["loss"] for order, report in reports.items()}
        return Encoding(
            positions,
            {"solver": "sgns", "rows": self.rows, "loss": losses, "threads": threads}
            | {"warnings": []},
        )
