"""What new edges changed, as Ray tasks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from peg_core.atomic_file import atomic_path
from peg_core.encoding.compare.movement import measure_movement
from peg_core.errors import GraphTooSmall
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.node_ids import NodeIds
from peg_core.metrics.ranking import roc_auc
from peg_core.random_streams import random_stream
from peg_core.splits.negative_sampling import Pairs, sample_non_edges
from workers.task_map import Result
from workers.tasks.encode import load_positions
from workers.tasks.model_scorer import ScorerRequest

# More new edges than this are represented by a random choice.
MOST_EDGES = 200_000

FloatTable = npt.NDArray[np.float32]


@dataclass(frozen=True)
class EncodedNodes:
    """A graph and where its nodes were placed."""

    graph: Path
    positions: Path

    def load(self, num_encodings: int) -> list[FloatTable]:
        num_nodes = GraphStore.open(self.graph).num_nodes
        return load_positions(self.positions, num_encodings, num_nodes=num_nodes)


def movement_task(before: EncodedNodes, now: EncodedNodes, num_encodings: int, out: Path) -> Result:
    """Distance of every node that both graphs have from where it was, for each encoding.

    Args:
        out: Parquet file to write: ``id``, then a column ``encoding-<n>`` each.
    """
    node_ids = NodeIds.open(before.graph)
    place = NodeIds.open(now.graph).lookup(node_ids.values)
    kept = np.flatnonzero(place >= 0)
    facts: list[dict[str, Any]] = []
    columns: dict[str, Any] = {"id": node_ids.take(kept)}
    tables = zip(before.load(num_encodings), now.load(num_encodings), strict=True)
    for number, (old, new) in enumerate(tables):
        movement = measure_movement(*_rows_of_both(old, new, place))
        columns[f"encoding-{number}"] = movement.distances.astype(np.float32)
        facts.append({"eta": movement.eta, "relative_eta": movement.relative_eta})
    with atomic_path(out) as temporary:
        pq.write_table(pa.table(columns), temporary, compression="zstd")
    new_nodes = GraphStore.open(now.graph).num_nodes - len(kept)
    return {
        "encodings": facts,
        "nodes": len(kept),
        "new_nodes": new_nodes,
        "lost_nodes": len(place) - len(kept),
    }


def new_edges_task(before: ScorerRequest, now: Path, seed: int) -> Result:
    """AUC of the edges that came, scored from the graph without them.

    Only edges between nodes that were there before can be scored; they are compared with as
    many random pairs that are edges in neither graph.

    Args:
        before: The model over the graph as it was, with the embeddings it had.
        now: The graph as it is.
    """
    old, new = GraphStore.open(before.graph), GraphStore.open(now)
    rng = random_stream(seed=seed, purpose="new edges")
    place = NodeIds.open(now).lookup(NodeIds.open(before.graph).values)
    source, target, count = _new_edges(old, new, place, rng)
    if not len(source):
        return {"edges": count, "scored": 0, "auc": None}
    try:
        others = _non_edges(old, new, place, len(source), rng)
    except GraphTooSmall:
        return {"edges": count, "scored": 0, "auc": None}
    scorer = before.open()
    auc = roc_auc(scorer.logits(source, target), scorer.logits(*others))
    return {"edges": count, "scored": len(source), "auc": auc}


def _rows_of_both(
    old: FloatTable, new: FloatTable, place: npt.NDArray[np.int64]
) -> tuple[FloatTable, FloatTable]:
    """Rows of the nodes that both have, in the old order; views where none was renumbered."""
    if np.array_equal(place, np.arange(len(place))):
        return old, new[: len(old)]
    return old[place >= 0], new[place[place >= 0]]


def _new_edges(
    old: GraphStore, new: GraphStore, place: npt.NDArray[np.int64], rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int]:
    """Edges that only ``new`` has between nodes of both, in the old numbers, and their count."""
    number = np.full(new.num_nodes, -1, dtype=np.int64)
    kept = np.flatnonzero(place >= 0)
    number[place[kept]] = kept
    source, target = (number[ends] for ends in new.edges())
    known = (source >= 0) & (target >= 0)
    source, target = source[known], target[known]
    fresh = ~old.contains(source, target)
    source, target = source[fresh], target[fresh]
    count = len(source)
    if count > MOST_EDGES:
        chosen = np.sort(rng.choice(count, MOST_EDGES, replace=False))
        source, target = source[chosen], target[chosen]
    return source, target, count


def _non_edges(
    old: GraphStore,
    new: GraphStore,
    place: npt.NDArray[np.int64],
    count: int,
    rng: np.random.Generator,
) -> Pairs:
    """Pairs of old nodes that are edges in neither graph, at most ``count``."""
    source, target = sample_non_edges(old, count, rng=rng)
    both = (place[source] >= 0) & (place[target] >= 0)
    linked = np.zeros(len(source), dtype=np.bool_)
    linked[both] = new.contains(place[source[both]], place[target[both]])
    return source[~linked], target[~linked]
