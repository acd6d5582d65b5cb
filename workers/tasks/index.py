"""Nearest-neighbour indexes as Ray tasks: a range of vectors in, one shard out."""

from __future__ import annotations

from typing import TypedDict

from peg_core.artifacts.vector_indexes import IndexPart, VectorIndexes
from workers.artifact_ref import ArtifactRef
from workers.embedded_graph_ref import EmbeddedGraphRef


class IndexResult(TypedDict):
    rows: int
    bytes: int


def build_index_task(
    embedded: EmbeddedGraphRef, out: ArtifactRef[VectorIndexes], part: IndexPart
) -> IndexResult:
    """Build one shard of an index; of the graph only its own rows are read."""
    indexes = out.open()
    rows = indexes.build(part, embedded.positions.open(), embedded.embeddings.open())
    return {"rows": rows, "bytes": indexes.file(part.stem).stat().st_size}
