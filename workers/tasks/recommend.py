"""Recommendations as Ray tasks: some nodes in, one file of their best candidates out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from peg_core.artifacts.embedded_graph import EmbeddedGraph
from peg_core.artifacts.vector_indexes import VectorIndexes
from peg_core.atomic_file import atomic_path
from peg_core.errors import PegError
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.graph_ids import GraphIds, KindIds
from peg_core.graph.ids.id_types import cast_ids
from peg_core.inference.conditions import Conditions
from peg_core.inference.list_side import ListSide
from peg_core.inference.top_k import Recommendations, Recommender, Searchable, recall
from peg_core.metrics.calibration import Calibration
from peg_core.storage.shared_array import read_rows
from workers.artifact_ref import ArtifactRef
from workers.embedded_graph_ref import ScorerRef
from workers.tasks.recommending.condition_tables import NO_CONDITIONS, ConditionFiles

# Candidates are scored for this many nodes at once.
NODES_PER_STEP = 256
# Up to this many allowed nodes are compared with one by one; of more, indexes find more at once.
MOST_COMPARED, MOST_AT_ONCE = 2**17, 32


class RecommendResult(TypedDict):
    """Nodes asked for, rows written, nodes with fewer candidates, candidates that score low."""

    nodes: int
    rows: int
    short: int
    low: int


class RecallResult(TypedDict):
    recall: list[float]


@dataclass(frozen=True)
class RecommendRequest:
    """What recommends.

    Args:
        graph: The ingested graph: the ids, and every known edge.
        asked: ``.npy`` file with the nodes to recommend for.
        side: What they are, and what is recommended.
        id_types: Types of the ids of the nodes and of their candidates in the output.
        names_kind: Whether the output says which kind the nodes are of.
        conditions: What may be recommended.
        least_score: Candidates with a lower score are left out.
    """

    graph: ArtifactRef[GraphStore]
    asked: Path
    side: ListSide
    id_types: tuple[pa.DataType, pa.DataType]
    scorer: ScorerRef
    indexes: ArtifactRef[VectorIndexes]
    calibration: ArtifactRef[Calibration]
    top_k: int
    nearby: int
    nearest: int
    names_kind: bool = False
    conditions: ConditionFiles = NO_CONDITIONS
    least_score: float | None = None

    def open(self) -> Recommender:
        embedded, known = self.scorer.embedded.open(), self.graph.open()
        conditions = self.conditions.open()
        indexes, nearest = self._indexes(embedded, conditions)
        return Recommender(
            scorer=self.scorer.over(embedded),
            known=known,
            indexes=indexes,
            top_k=self.top_k,
            nearby=self.nearby,
            nearest=nearest,
            side=self.side,
            conditions=conditions,
        )

    def _indexes(
        self, embedded: EmbeddedGraph, conditions: Conditions
    ) -> tuple[Sequence[Searchable], int]:
        """What finds near partners, and how many it has to find so that enough are allowed."""
        partners, indexes = self.side.partners, self.indexes.open()
        rows = self.side.rows(embedded.graph.num_nodes)
        if conditions.allowed is None:
            return indexes.load(embedded, rows), self.nearest
        chosen = np.flatnonzero(conditions.allowed[partners.first : partners.last])
        if len(chosen) <= MOST_COMPARED:
            return indexes.compare(embedded, chosen + partners.first), self.nearest
        times = min(MOST_AT_ONCE, -(-partners.count // len(chosen)))
        return indexes.load(embedded, rows), times * self.nearest


def recommend_task(request: RecommendRequest, start: int, stop: int, out: Path) -> RecommendResult:
    """Write the candidates of the nodes ``start .. stop``; the file appears when it is whole."""
    recommender = request.open()
    ids = request.side.ids(request.graph.at(GraphIds).open())
    calibration = request.calibration.open()
    asked = read_rows(request.asked, start, stop)
    schema = _schema(request)
    rows = short = low = 0
    with atomic_path(out) as temporary:
        with pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
            for first in range(0, len(asked), NODES_PER_STEP):
                nodes = np.array(asked[first : first + NODES_PER_STEP])
                found = recommender.recommend(nodes)
                counts = np.bincount(found.row, minlength=len(nodes))
                short += int((counts < request.top_k).sum())
                chance = calibration.probabilities(found.logit)
                if request.least_score is not None:
                    kept = chance >= np.float32(request.least_score)
                    low += int((~kept).sum())
                    found, chance = found.some(kept), chance[kept]
                rows += len(found.row)
                writer.write_table(_table(request, nodes, found, chance, ids, schema))
        written = pq.read_metadata(temporary).num_rows
        if written != rows:
            raise PegError(
                f"{out} holds {written:,} rows after writing, {rows:,} were found; "
                "the disk may be full or faulty: free space and run again"
            )
    return {"nodes": len(asked), "rows": rows, "short": short, "low": low}


def recall_task(request: RecommendRequest, sample: Sequence[int]) -> RecallResult:
    """Recall of some nodes, by their place among those asked for, against scoring every node."""
    recommender = request.open()
    nodes = np.load(request.asked, mmap_mode="r")[list(sample)]
    found = [
        recall(recommender.recommend(np.array([node])), recommender.exhaust(node))
        for node in nodes.tolist()
    ]
    return {"recall": found}


def _schema(request: RecommendRequest) -> pa.Schema:
    node, candidate = request.id_types
    kind = {"kind": pa.string()} if request.names_kind else {}
    columns = {"node": node, "rank": pa.int32(), "candidate": candidate, "score": pa.float32()}
    return pa.schema({**kind, **columns})


def _table(
    request: RecommendRequest,
    nodes: npt.NDArray[np.int64],
    found: Recommendations,
    chance: npt.NDArray[np.float32],
    ids: tuple[KindIds, KindIds],
    schema: pa.Schema,
) -> pa.Table:
    columns = [
        cast_ids(ids[0].take(nodes[found.row]), schema.field("node").type),
        pa.array(found.rank).cast(pa.int32()),
        cast_ids(ids[1].take(found.candidate), schema.field("candidate").type),
        pa.array(chance),
    ]
    if request.names_kind:
        columns.insert(0, pa.array([request.side.kind] * len(found.row), pa.string()))
    return pa.table(columns, schema=schema)
