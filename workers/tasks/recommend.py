"""Recommendations as Ray tasks: some nodes in, one file of their best candidates out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from peg_core.atomic_file import atomic_path
from peg_core.errors import PegError
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.node_ids import NodeIds
from peg_core.inference.neighbour_index import NeighbourIndex
from peg_core.inference.top_k import Recommendations, Recommender, recall
from peg_core.metrics.calibration import Calibration
from workers.task_map import Result
from workers.tasks.encode import load_positions
from workers.tasks.model_scorer import ScorerRequest

# Candidates are scored for this many nodes at once.
NODES_PER_STEP = 256


@dataclass(frozen=True)
class IndexRequest:
    """Where the vectors and their indexes lie.

    Args:
        scorer: Names positions and embeddings.
        out: Folder of the index files.
    """

    scorer: ScorerRequest
    out: Path

    def names(self) -> list[str]:
        """An index for every encoding, and one for the embeddings."""
        return [*(f"encoding-{n}" for n in range(self.scorer.num_encodings)), "embedding"]

    def vectors(self, name: str) -> tuple[npt.NDArray[np.float32], bool]:
        """The rows of an index, and whether they are scaled to length 1."""
        embeddings = np.load(self.scorer.embeddings, mmap_mode="r")
        if name == "embedding":
            return embeddings, True
        positions = load_positions(
            self.scorer.positions, self.scorer.num_encodings, num_nodes=len(embeddings)
        )
        return positions[int(name.removeprefix("encoding-"))], False

    def file(self, name: str) -> Path:
        return self.out / f"{name}.usearch"

    def open(self) -> list[NeighbourIndex]:
        """All indexes, memory-mapped."""
        opened = []
        for name in self.names():
            vectors, unit_rows = self.vectors(name)
            opened.append(NeighbourIndex(self.file(name), vectors, unit_rows=unit_rows))
        return opened


def build_index_task(request: IndexRequest, name: str) -> Result:
    """Build one index."""
    vectors, unit_rows = request.vectors(name)
    NeighbourIndex.build(vectors, request.file(name), unit_rows=unit_rows)
    return {"rows": len(vectors), "bytes": request.file(name).stat().st_size}


@dataclass(frozen=True)
class RecommendRequest:
    """What recommends.

    Args:
        nodes: Folder of the ingested graph: the ids, and every known edge.
        asked: ``.npy`` file with the nodes to recommend for.
        id_type: Type of the ids in the output.
        calibration: Folder of the model's calibration.
    """

    nodes: Path
    asked: Path
    id_type: pa.DataType
    index: IndexRequest
    calibration: Path
    top_k: int
    nearby: int
    nearest: int

    def open(self) -> Recommender:
        return Recommender(
            scorer=self.index.scorer.open(),
            known=GraphStore.open(self.nodes),
            indexes=self.index.open(),
            top_k=self.top_k,
            nearby=self.nearby,
            nearest=self.nearest,
        )


def recommend_task(request: RecommendRequest, start: int, stop: int, out: str) -> Result:
    """Write the candidates of the nodes ``start .. stop``; the file appears when it is whole."""
    recommender = request.open()
    node_ids = NodeIds.open(request.nodes)
    calibration = Calibration.open(request.calibration)
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


def recall_task(request: RecommendRequest, sample: Sequence[int]) -> Result:
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
