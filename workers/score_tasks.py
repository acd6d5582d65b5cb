"""Scoring as Ray tasks: a piece of a candidate file in, one scores file out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from peg_core.atomic_file import atomic_path
from peg_core.errors import PegError
from peg_core.graph.edge_table import RowGroup, open_parquet, read_error
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.id_types import normalise_ids
from peg_core.graph.node_ids import NodeIds
from peg_core.inference.pair_scoring import PairScorer, probabilities
from peg_core.models.model_file import load_model
from workers.embed_tasks import components_file
from workers.encode_tasks import load_positions
from workers.task_map import Result

BATCH_ROWS = 131_072
HISTOGRAM_BINS = 50


@dataclass(frozen=True)
class ScoreRequest:
    """What scores, and how the candidates' columns are called.

    Args:
        nodes: Folder of the ingested graph, for the ids.
        graph: The graph that was embedded.
    """

    nodes: Path
    graph: Path
    positions: Path
    model: Path
    embeddings: Path
    num_encodings: int
    source: str
    target: str


def score_task(request: ScoreRequest, groups: list[RowGroup], out: str) -> Result:
    """Score some row groups of one file; the output appears when every row is in it."""
    graph = GraphStore.open(request.graph)
    node_ids = NodeIds.open(request.nodes)
    scorer = PairScorer(
        load_model(request.model),
        graph,
        np.load(request.embeddings, mmap_mode="r"),
        load_positions(request.positions, request.num_encodings, num_nodes=graph.num_nodes),
        np.load(components_file(request.embeddings), mmap_mode="r"),
    )
    rows = unknown = 0
    histogram = np.zeros(HISTOGRAM_BINS, dtype=np.int64)
    with atomic_path(Path(out)) as temporary:
        writer = None
        for batch in _batches(groups):
            scored, missing, counts = _score_batch(batch, request, node_ids, scorer)
            writer = writer or pq.ParquetWriter(temporary, scored.schema, compression="zstd")
            writer.write_table(scored)
            rows, unknown, histogram = rows + len(scored), unknown + missing, histogram + counts
        if writer is not None:
            writer.close()
        _verify_rows(temporary, sum(group.rows for group in groups))
    return {"rows": rows, "unknown": unknown, "histogram": histogram.tolist(), "out": out}


def _batches(groups: list[RowGroup]) -> Iterator[pa.Table]:
    file = groups[0].file
    parquet = open_parquet(file)
    try:
        for batch in parquet.iter_batches(
            batch_size=BATCH_ROWS, row_groups=[g.index for g in groups], use_threads=False
        ):
            yield pa.Table.from_batches([batch])
    except (pa.ArrowException, OSError) as error:
        raise read_error(file, error) from error


def _score_batch(
    table: pa.Table, request: ScoreRequest, node_ids: NodeIds, scorer: PairScorer
) -> tuple[pa.Table, int, npt.NDArray[np.int64]]:
    """The batch with its scores, how many pairs have an unknown end, and their histogram."""
    source = node_ids.lookup(normalise_ids(table[request.source]))
    target = node_ids.lookup(normalise_ids(table[request.target]))
    known = (source >= 0) & (target >= 0)
    scores = np.zeros(len(table), dtype=np.float32)
    scores[known] = probabilities(scorer.logits(source[known], target[known]))
    rest = [name for name in table.column_names if name not in (request.source, request.target)]
    columns: dict[str, Any] = {
        request.source: table[request.source],
        request.target: table[request.target],
        "score": pa.array(scores, mask=~known),
        **{name: table[name] for name in rest},
    }
    histogram, _ = np.histogram(scores[known], bins=HISTOGRAM_BINS, range=(0, 1))
    return pa.table(columns), int((~known).sum()), histogram


def _verify_rows(file: Path, needed: int) -> None:
    found = pq.read_metadata(file).num_rows
    if found != needed:
        raise PegError(
            f"{file} holds {found:,} rows after writing, {needed:,} were scored; "
            "the disk may be full or faulty: free space and run again"
        )
