"""The best of the scored pairs with their reasons, as a Ray task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from peg_core.artifacts.trained_model import TrainedModel
from peg_core.atomic_file import atomic_path
from peg_core.explain.explanation import why_column
from peg_core.graph.ids.graph_ids import GraphIds
from peg_core.graph.node_features import NodeFeatures
from peg_core.metrics.calibration import Calibration
from workers.artifact_ref import ArtifactRef
from workers.embedded_graph_ref import ScorerRef

if TYPE_CHECKING:
    from peg_core.explain.pair_explainer import PairExplainer

# Candidates may list a pair several times: so many rows are looked at for each that is wanted.
ROWS_PER_PAIR = 10


@dataclass(frozen=True)
class ExplainRequest:
    """What scored, and what is wanted.

    Args:
        nodes: The ids of the graph.
        scorer: The model, and the graph that it embedded.
        calibration: Of the model.
        features: What it reads of the nodes.
        columns: Of the scores: both ends.
        score: Of the scores: what they are ordered by.
        prior: Share of links among the candidates.
        most: Pairs that are explained.
    """

    nodes: ArtifactRef[GraphIds]
    scorer: ScorerRef
    calibration: ArtifactRef[Calibration]
    features: ArtifactRef[NodeFeatures]
    columns: tuple[str, str]
    score: str
    prior: float | None
    most: int

    def open(self) -> PairExplainer:
        """What explains the scores, as they were calibrated."""
        calibration = self.calibration.open()
        model = TrainedModel(self.scorer.model.open().folder, calibration)
        embedded = self.scorer.embedded.open()
        explainer = embedded.explainer(model, self.nodes.open(), self.features.open())
        return explainer.with_line(calibration.line(prior=self.prior))


class ExplainResult(TypedDict):
    """How many pairs were explained."""

    pairs: int


def explain_task(request: ExplainRequest, scores: Sequence[Path], out: Path) -> ExplainResult:
    """Write the best pairs, the very best first, with a column ``why``.

    Args:
        scores: The files with the scored candidates.
    """
    best = best_pairs(scores, request.columns, request.score, request.most)
    explainer = request.open()
    ends = [
        kind.lookup(best[name])
        for kind, name in zip(explainer.ids.ends, request.columns, strict=True)
    ]
    table = best.append_column("why", why_column(list(explainer.explain(*ends))))
    with atomic_path(out) as temporary:
        pq.write_table(table, temporary, compression="zstd")
    return {"pairs": len(table)}


def best_pairs(scores: Sequence[Path], columns: tuple[str, str], score: str, most: int) -> pa.Table:
    """Different pairs of highest score; equal scores go by the ids. No more rows are held."""
    order = [pl.col(score), *map(pl.col, columns)]
    rows = (
        pl.scan_parquet(list(scores))
        .select(*columns, score)
        .filter(pl.col(score).is_not_null())
        .top_k(ROWS_PER_PAIR * most, by=order)
        .collect(engine="streaming")
    )
    best = rows.sort(order, descending=True).unique(columns, keep="first", maintain_order=True)
    return best.head(most).to_arrow()
