"""Evaluation as Ray tasks: a model, or the heuristics, over the held-out pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from peg_core.atomic_file import atomic_path
from peg_core.graph.node_ids import NodeIds
from peg_core.inference.pair_scoring import PairScorer, probabilities
from peg_core.metrics.ranking import ranking_metrics
from peg_core.models.model_file import load_model
from peg_core.models.structural_features import neighborhood_overlap
from peg_core.splits.split_store import LabelledPairs, SplitStore
from workers.embed_tasks import components_file
from workers.encode_tasks import load_positions
from workers.task_map import Result

HEURISTICS = ("common neighbours", "adamic-adar", "resource allocation", "preferential attachment")


@dataclass(frozen=True)
class EvaluateRequest:
    """A model and the split it is judged on; messages come from the training graph alone."""

    graph: Path
    split: Path
    positions: Path
    model: Path
    embeddings: Path
    num_encodings: int
    hits: Sequence[int]
    columns: tuple[str, str]
    out: Path


def evaluate_model_task(request: EvaluateRequest) -> Result:
    """Metrics of a model; the scores of every pair are kept beside them."""
    split = SplitStore(request.split)
    graph = split.train_graph()
    scorer = PairScorer(
        load_model(request.model),
        graph,
        np.load(request.embeddings, mmap_mode="r"),
        load_positions(request.positions, request.num_encodings, num_nodes=graph.num_nodes),
        np.load(components_file(request.embeddings), mmap_mode="r"),
    )
    result: Result = {}
    for part in ("valid", "test"):
        pairs = split.held_out(part)
        logits = scorer.logits(pairs.source, pairs.target)
        result[part] = ranking_metrics(*pairs.by_label(logits), hits=request.hits)
        _write_pairs(request, part, pairs, probabilities(logits))
    return result


def evaluate_heuristics_task(split: Path, hits: Sequence[int]) -> Result:
    """Metrics of what needs no training, on the same pairs and the same graph."""
    store = SplitStore(split)
    graph = store.train_graph()
    pairs = store.held_out("test")
    overlap = neighborhood_overlap(graph, pairs.source, pairs.target)
    degrees = graph.degrees.astype(np.float64)
    scores = [*overlap.T, degrees[pairs.source] * degrees[pairs.target]]
    return {
        name: ranking_metrics(*pairs.by_label(score), hits=hits)
        for name, score in zip(HEURISTICS, scores, strict=True)
    }


def _write_pairs(
    request: EvaluateRequest, part: str, pairs: LabelledPairs, score: npt.NDArray[Any]
) -> None:
    node_ids = NodeIds.open(request.graph)
    table = pa.table(
        {
            request.columns[0]: node_ids.take(pairs.source),
            request.columns[1]: node_ids.take(pairs.target),
            "score": score,
            "label": pairs.label,
        }
    )
    with atomic_path(request.out / f"{part}_pairs.parquet") as temporary:
        pq.write_table(table, temporary, compression="zstd")
