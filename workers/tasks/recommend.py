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

from peg_core.artifacts.vector_indexes import VectorIndexes
from peg_core.atomic_file import atomic_path
from peg_core.errors import PegError
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.node_ids import NodeIds
from peg_core.inference.top_k import Recommendations, Recommender, recall
from peg_core.metrics.calibration import Calibration
from workers.artifact_ref import ArtifactRef
from workers.embedded_graph_ref import EmbeddedGraphRef, ScorerRef

# Candidates are scored for this many nodes at once.
NODES_PER_STEP = 256


class IndexResult(TypedDict):
    rows: int
    bytes: int


class RecommendResult(TypedDict):
    """Nodes asked for, rows written, and nodes with fewer candidates than wanted."""

    nodes: int
    rows: int
    short: int


class RecallResult(TypedDict):
    recall: list[float]


def build_index_task(
    embedded: EmbeddedGraphRef, out: ArtifactRef[VectorIndexes], name: str
) -> IndexResult:
    """Build one index."""
    indexes = out.open()
    rows = indexes.build(name, embedded.open())
    return {"rows": rows, "bytes": indexes.file(name).stat().st_size}


@dataclass(frozen=True)
class RecommendRequest:
    """What recommends.

    Args:
        graph: The ingested graph: the ids, and every known edge.
        asked: ``.npy`` file with the nodes to recommend for.
        id_type: Type of the ids in the output.
    """

    graph: ArtifactRef[GraphStore]
    asked: Path
    id_type: pa.DataType
    scorer: ScorerRef
    indexes: ArtifactRef[VectorIndexes]
    calibration: ArtifactRef[Calibration]
    top_k: int
    nearby: int
    nearest: int

    def open(self) -> Recommender:
        embedded = self.scorer.embedded.open()
        return Recommender(
            scorer=embedded.scorer(self.scorer.model.open()),
            known=self.graph.open(),
            indexes=self.indexes.open().load(embedded),
            top_k=self.top_k,
            nearby=self.nearby,
            nearest=self.nearest,
        )


def recommend_task(request: RecommendRequest, start: int, stop: int, out: str) -> RecommendResult:
    """Write the candidates of the nodes ``start .. stop``; the file appears when it is whole."""
    recommender = request.open()
    node_ids = request.graph.at(NodeIds).open()
    calibration = request.calibration.open()
    asked = np.load(request.asked, mmap_mode="r")[start:stop]
    schema = _schema(request.id_type)
    rows = short = 0
    with atomic_path(Path(out)) as temporary:
        with pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
            for first in range(0, len(asked), NODES_PER_STEP):
                nodes = np.array(asked[first : first + NODES_PER_STEP])
                found = recommender.recommend(nodes)
                counts = np.bincount(found.place, minlength=len(nodes))
                short += int((counts < request.top_k).sum())
                rows += len(found.place)
                writer.write_table(_table(nodes, found, node_ids, calibration, schema))
        written = pq.read_metadata(temporary).num_rows
        if written != rows:
            raise PegError(
                f"{out} holds {written:,} rows after writing, {rows:,} were found; "
                "the disk may be full or faulty: free space and run again"
            )
    return {"nodes": len(asked), "rows": rows, "short": short}


def recall_task(request: RecommendRequest, sample: Sequence[int]) -> RecallResult:
    """Recall of some nodes against scoring them with every node."""
    recommender = request.open()
    found = [
        recall(recommender.recommend(np.array([node])), recommender.exhaust(node))
        for node in sample
    ]
    return {"recall": found}


def _schema(id_type: pa.DataType) -> pa.Schema:
    return pa.schema(
        {"node": id_type, "rank": pa.int32(), "candidate": id_type, "score": pa.float32()}
    )


def _table(
    nodes: npt.NDArray[np.int64],
    found: Recommendations,
    node_ids: NodeIds,
    calibration: Calibration,
    schema: pa.Schema,
) -> pa.Table:
    columns = [
        node_ids.take(nodes[found.place]),
        pa.array(found.rank),
        node_ids.take(found.candidate),
        pa.array(calibration.probabilities(found.logit)),
    ]
    return pa.table(
        [column.cast(field.type) for column, field in zip(columns, schema, strict=True)],
        schema=schema,
    )
