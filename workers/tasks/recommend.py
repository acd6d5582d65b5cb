"""Recommendations as Ray tasks: some nodes in, one file of their best candidates out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from peg_core.artifacts.vector_indexes import VectorIndexes
from peg_core.atomic_file import atomic_path
from peg_core.errors import InputError, PegError
from peg_core.graph.edge_table import (
    find_id_type,
    find_parquet_files,
    list_row_groups,
    read_row_group,
)
from peg_core.graph.graph_store import GraphSize, GraphStore
from peg_core.graph.ids.id_types import normalise_ids
from peg_core.graph.ids.node_ids import NodeIds
from peg_core.inference.top_k import Recommendations, Recommender, recall
from peg_core.mapped_array import new_mapped_array
from peg_core.metrics.calibration import Calibration
from peg_core.storage.shared_array import read_rows
from workers.artifact_ref import ArtifactRef
from workers.embedded_graph_ref import ScorerRef

# Candidates are scored for this many nodes at once.
NODES_PER_STEP = 256
NODES_PER_WRITE = 2**20


class AskedResult(TypedDict):
    """Nodes that are asked for, and ids that are none."""

    nodes: int
    unknown: int


class RecommendResult(TypedDict):
    """Nodes asked for, rows written, and nodes with fewer candidates than wanted."""

    nodes: int
    rows: int
    short: int


class RecallResult(TypedDict):
    recall: list[float]


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


@dataclass(frozen=True)
class AskedNodes:
    """Who is recommended for.

    Args:
        table: Parquet with their ids in ``column``; None: every node.
        refuse_unknown: End with an error at an id that is no node.
        out: ``.npy`` file that gets their indices, each once, in the order of the table.
    """

    table: str | None
    column: str
    refuse_unknown: bool
    nodes: ArtifactRef[NodeIds]
    out: Path


def asked_task(wanted: AskedNodes) -> AskedResult:
    """Look up the nodes that are asked for."""
    if wanted.table is None:
        count = wanted.nodes.at(GraphSize).open().num_nodes
        steps = range(0, count, NODES_PER_WRITE)
        _write_asked(
            wanted.out, count, (np.arange(a, min(a + NODES_PER_WRITE, count)) for a in steps)
        )
        return {"nodes": count, "unknown": 0}
    node_ids = wanted.nodes.open()
    groups = list_row_groups(find_parquet_files(wanted.table), [wanted.column])
    if not groups:
        raise InputError.no_rows(wanted.table, "nodes")
    find_id_type((group.file, [wanted.column]) for group in groups)
    parts: list[npt.NDArray[np.int64]] = []
    seen = np.zeros(len(node_ids), dtype=np.bool_)
    rows = unknown = 0
    for group in groups:
        ids = read_row_group(group, [wanted.column])[wanted.column]
        index = node_ids.lookup(normalise_ids(ids))
        if wanted.refuse_unknown and (index < 0).any():
            row = int((index < 0).argmax())
            raise InputError(
                f"column {wanted.column!r} of {group.file} names the node {ids[row]} in row "
                f"{row:,} of row group {group.index}, the graph has no such node; remove it, or "
                "set `recommend.on_unknown: drop`"
            )
        rows, unknown = rows + len(index), unknown + int((index < 0).sum())
        parts.append(_new_nodes(index[index >= 0], seen))
    if rows == unknown:
        raise InputError(
            f"none of the {rows:,} ids in {wanted.table} is a node of the graph; "
            f"check that {wanted.column!r} holds the ids that the edges use"
        )
    count = sum(map(len, parts))
    _write_asked(wanted.out, count, parts)
    return {"nodes": count, "unknown": unknown}


def _new_nodes(nodes: npt.NDArray[np.int64], seen: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Those that were not seen before, each once, in their order; now they were."""
    _, first = np.unique(nodes, return_index=True)
    new = nodes[np.sort(first)]
    new = new[~seen[new]]
    seen[new] = True
    return new


def _write_asked(file: Path, count: int, parts: Iterable[npt.NDArray[np.int64]]) -> None:
    """All parts in one file, without a copy of them in memory."""
    with atomic_path(file) as temporary:
        whole = new_mapped_array(temporary, (count,), np.int64)
        first = 0
        for part in parts:
            whole[first : first + len(part)] = part
            first += len(part)
        whole.flush()


def recommend_task(request: RecommendRequest, start: int, stop: int, out: Path) -> RecommendResult:
    """Write the candidates of the nodes ``start .. stop``; the file appears when it is whole."""
    recommender = request.open()
    node_ids = request.graph.at(NodeIds).open()
    calibration = request.calibration.open()
    asked = read_rows(request.asked, start, stop)
    schema = _schema(request.id_type)
    rows = short = 0
    with atomic_path(out) as temporary:
        with pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
            for first in range(0, len(asked), NODES_PER_STEP):
                nodes = np.array(asked[first : first + NODES_PER_STEP])
                found = recommender.recommend(nodes)
                counts = np.bincount(found.row, minlength=len(nodes))
                short += int((counts < request.top_k).sum())
                rows += len(found.row)
                writer.write_table(_table(nodes, found, node_ids, calibration, schema))
        written = pq.read_metadata(temporary).num_rows
        if written != rows:
            raise PegError(
                f"{out} holds {written:,} rows after writing, {rows:,} were found; "
                "the disk may be full or faulty: free space and run again"
            )
    return {"nodes": len(asked), "rows": rows, "short": short}


def recall_task(request: RecommendRequest, sample: Sequence[int]) -> RecallResult:
    """Recall of some nodes, by their place among those asked for, against scoring every node."""
    recommender = request.open()
    nodes = np.load(request.asked, mmap_mode="r")[list(sample)]
    found = [
        recall(recommender.recommend(np.array([node])), recommender.exhaust(node))
        for node in nodes.tolist()
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
        node_ids.take(nodes[found.row]),
        pa.array(found.rank),
        node_ids.take(found.candidate),
        pa.array(calibration.probabilities(found.logit)),
    ]
    return pa.table(
        [column.cast(field.type) for column, field in zip(columns, schema, strict=True)],
        schema=schema,
    )
