"""What new edges changed, as Ray tasks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from peg_core.artifacts.positions import Positions
from peg_core.atomic_file import atomic_path
from peg_core.encoding.compare.movement import measure_movement
from peg_core.errors import GraphTooSmall
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.graph_ids import GraphIds
from peg_core.metrics.ranking import roc_auc
from peg_core.random_streams import random_stream
from peg_core.splits.negative_sampling import Pairs, sample_non_edges
from workers.artifact_ref import AnyRef, ArtifactRef
from workers.embedded_graph_ref import ScorerRef

# More new edges than this are represented by a random choice.
MOST_EDGES = 200_000

FloatTable = npt.NDArray[np.float32]


@dataclass(frozen=True)
class EncodedNodes:
    """A graph and the positions of its nodes."""

    graph: ArtifactRef[GraphStore]
    positions: ArtifactRef[Positions]

    def load(self) -> list[FloatTable]:
        return self.positions.open().arrays(num_nodes=self.graph.open().num_nodes)

    def node_ids(self) -> GraphIds:
        return self.graph.at(GraphIds).open()


class MovementResult(TypedDict):
    """Movement by encoding, and nodes that both graphs have, that came, and that went."""

    encodings: list[dict[str, Any]]
    nodes: int
    new_nodes: int
    lost_nodes: int


class NewEdgesResult(TypedDict):
    """Edges that came, how many of them were scored, and how well."""

    edges: int | None
    scored: int
    auc: float | None


def movement_task(before: EncodedNodes, now: EncodedNodes, out: AnyRef) -> MovementResult:
    """Distance of every node that both graphs have from where it was, for each encoding.

    Args:
        out: Gets ``movement.parquet``: ``id``, ``kind`` where nodes have one, then a column for
            each encoding.
    """
    node_ids = before.node_ids()
    index = now.node_ids().find(node_ids)
    kept = np.flatnonzero(index >= 0)
    facts: list[dict[str, Any]] = []
    columns: dict[str, Any] = {"id": node_ids.take(kept)}
    if (names := node_ids.names(kept)) is not None:
        columns["kind"] = names
    tables = zip(before.load(), now.load(), strict=True)
    for number, (old, new) in enumerate(tables):
        movement = measure_movement(*_rows_of_both(old, new, index))
        columns[Positions.column(number)] = movement.distances.astype(np.float32)
        facts.append({"eta": movement.eta, "relative_eta": movement.relative_eta})
    with atomic_path(out.folder / "movement.parquet") as temporary:
        pq.write_table(pa.table(columns), temporary, compression="zstd")
    new_nodes = now.graph.open().num_nodes - len(kept)
    return {
        "encodings": facts,
        "nodes": len(kept),
        "new_nodes": new_nodes,
        "lost_nodes": len(index) - len(kept),
    }


def new_edges_task(before: ScorerRef, now: ArtifactRef[GraphStore], seed: int) -> NewEdgesResult:
    """AUC of the edges that came, scored from the graph without them.

    Only edges between nodes that were there before can be scored; they are compared with as
    many random pairs that are edges in neither graph.

    Args:
        before: The model over the graph as it was, with the embeddings it had.
        now: The graph as it is.
    """
    old, new = before.embedded.graph.open(), now.open()
    rng = random_stream(seed=seed, purpose="new edges")
    index = now.at(GraphIds).open().find(before.embedded.graph.at(GraphIds).open())
    source, target, count = _new_edges(old, new, index, rng)
    if not len(source):
        return {"edges": count, "scored": 0, "auc": None}
    try:
        others = _non_edges(old, new, index, len(source), rng)
    except GraphTooSmall:
        return {"edges": count, "scored": 0, "auc": None}
    scorer = before.open()
    auc = roc_auc(scorer.logits(source, target), scorer.logits(*others))
    return {"edges": count, "scored": len(source), "auc": auc}


def _rows_of_both(
    old: FloatTable, new: FloatTable, index: npt.NDArray[np.int64]
) -> tuple[FloatTable, FloatTable]:
    """Rows of the nodes that both have, in the old order; views where none was renumbered."""
    if np.array_equal(index, np.arange(len(index))):
        return old, new[: len(old)]
    return old[index >= 0], new[index[index >= 0]]


def _new_edges(
    old: GraphStore, new: GraphStore, index: npt.NDArray[np.int64], rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], int]:
    """Edges that only ``new`` has between nodes of both, in the old numbers, and their count."""
    number = np.full(new.num_nodes, -1, dtype=np.int64)
    kept = np.flatnonzero(index >= 0)
    number[index[kept]] = kept
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
    index: npt.NDArray[np.int64],
    count: int,
    rng: np.random.Generator,
) -> Pairs:
    """Pairs of old nodes that are edges in neither graph, at most ``count``."""
    source, target = sample_non_edges(old, count, rng=rng)
    both = (index[source] >= 0) & (index[target] >= 0)
    linked = np.zeros(len(source), dtype=np.bool_)
    linked[both] = new.contains(index[source[both]], index[target[both]])
    return source[~linked], target[~linked]
