"""Scoring as Ray tasks: a piece of a candidate file in, one scores file out."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from peg_core.atomic_file import atomic_path
from peg_core.errors import PegError
from peg_core.graph.edge_table import RowGroup, open_parquet, read_error
from peg_core.graph.ids.graph_ids import GraphIds
from peg_core.graph.ids.wrong_kind import require_kind
from peg_core.inference.candidate_batch import (
    HISTOGRAM_BINS,
    ScoreColumns,
    ScoredBatch,
    score_batch,
)
from workers.artifact_ref import ArtifactRef
from workers.embedded_graph_ref import ScorerRef
from workers.tasks.overlap import read_ahead, write_behind

if TYPE_CHECKING:
    from peg_core.inference.pair_scoring import PairScorer

# Rows that are read, scored and written together: a row group of the output.
BATCH_ROWS = 262_144
# Of a row group, to see whether its ids are of the right kinds.
SAMPLE_ROWS = 8_192
PROGRESS_SECONDS = 1.0


@dataclass(frozen=True)
class ScoreRequest:
    """What scores, and how the candidates' columns are called.

    Args:
        nodes: The ids of the graph.
        scorer: The model, and the graph that it embedded.
        columns: What is read and written.
    """

    nodes: ArtifactRef[GraphIds]
    scorer: ScorerRef
    columns: ScoreColumns


class ScoreResult(TypedDict):
    """What became of the rows of a shard."""

    rows: int
    written: int
    reasons: dict[str, int]
    histogram: list[int]


class KindsResult(TypedDict):
    """How many candidates were looked at."""

    rows: int


@dataclass
class _Tally:
    """What the manifest tells of a shard."""

    rows: int = 0
    kept: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    histogram: npt.NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(HISTOGRAM_BINS, dtype=np.int64)
    )

    def add(self, rows: int, batch: ScoredBatch) -> None:
        self.rows += rows
        self.kept += len(batch.table)
        self.reasons.update(batch.reasons)
        self.histogram += batch.histogram


def score_task(request: ScoreRequest, groups: list[RowGroup], out: Path) -> ScoreResult:
    """Score some row groups of one file; the output appears when every row is in it.

    Rows are read ahead and written behind by threads of their own while this one computes.
    """
    ids, scorer = _open(request, request.scorer.embedded.embeddings.open().file.stat().st_mtime_ns)
    tally = _Tally()
    progress = _RowFile(rows_file(out))

    def scored() -> Iterator[pa.Table]:
        for table in read_ahead(_tables(groups)):
            batch = score_batch(table, request.columns, ids.ends, scorer, location=groups[0].file)
            tally.add(len(table), batch)
            progress.tell(tally.rows)
            yield batch.table

    try:
        with atomic_path(out) as temporary:
            _write(scored(), temporary)
            _verify_rows(temporary, tally, sum(group.rows for group in groups))
    finally:
        progress.remove()
    return {
        "rows": tally.rows,
        "written": tally.kept,
        "reasons": dict(tally.reasons),
        "histogram": tally.histogram.tolist(),
    }


def kinds_task(
    nodes: ArtifactRef[GraphIds], columns: tuple[str, str], groups: list[RowGroup]
) -> KindsResult:
    """Refuse candidates whose ids are of the wrong kinds, by the first rows of some row groups."""
    ids, rows = nodes.open(), 0
    tables = [next(_tables([group])).slice(0, SAMPLE_ROWS) for group in groups]
    for kind, column in zip(ids.ends, columns, strict=True):
        wanted = pa.chunked_array([part for table in tables for part in table[column].chunks])
        require_kind(ids, kind, wanted, column=column, location=groups[0].file)
        rows = len(wanted)
    return {"rows": rows}


def rows_file(out: Path) -> Path:
    """Where a task that is under way leaves the number of rows it has scored."""
    return out.with_name(f".{out.stem}.rows")


@lru_cache(maxsize=1)
def _open(request: ScoreRequest, written_ns: int) -> tuple[GraphIds, PairScorer]:
    """Everything but the candidates; the next shard in this process finds it open."""
    del written_ns  # embeddings that were written again are opened again
    return request.nodes.open(), request.scorer.open()


def _tables(groups: list[RowGroup]) -> Iterator[pa.Table]:
    """The rows in their order, in tables of ``BATCH_ROWS`` however small the row groups are."""
    file = groups[0].file
    parquet = open_parquet(file)
    waiting: list[pa.RecordBatch] = []
    try:
        for batch in parquet.iter_batches(
            batch_size=BATCH_ROWS, row_groups=[g.index for g in groups], use_threads=False
        ):
            if waiting and sum(map(len, waiting)) + len(batch) > BATCH_ROWS:
                yield pa.Table.from_batches(waiting)
                waiting = []
            waiting.append(batch)
    except (pa.ArrowException, OSError) as error:
        raise read_error(file, error) from error
    if waiting:
        yield pa.Table.from_batches(waiting)


def _write(tables: Iterator[pa.Table], file: Path) -> None:
    """One row group a table, compressed.

    Dictionaries serve where values are long and repeat; of numbers they take most of the
    time. Integers are packed by their differences, so that zstd has less to read.
    """
    first = next(tables)
    integers = [column.name for column in first.schema if pa.types.is_integer(column.type)]
    numbers = {*integers, *(c.name for c in first.schema if pa.types.is_floating(c.type))}
    with pq.ParquetWriter(
        file,
        first.schema,
        compression="zstd",
        use_dictionary=[name for name in first.column_names if name not in numbers],
        column_encoding=dict.fromkeys(integers, "DELTA_BINARY_PACKED"),
    ) as writer:
        writer.write_table(first)
        del first
        write_behind(tables, writer.write_table)


def _verify_rows(file: Path, tally: _Tally, needed: int) -> None:
    found = pq.read_metadata(file).num_rows
    if found != tally.kept or tally.rows != needed:
        raise PegError(
            f"{file} holds {found:,} rows after writing, {tally.kept:,} of {tally.rows:,} read "
            f"were to be written and {needed:,} to be read; the disk may be full or faulty, or "
            "the candidates changed meanwhile: run again"
        )


class _RowFile:
    """A number in a file, written now and then."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._next = time.monotonic() + PROGRESS_SECONDS

    def tell(self, rows: int) -> None:
        if time.monotonic() >= self._next:
            self._file.write_text(str(rows))
            self._next = time.monotonic() + PROGRESS_SECONDS

    def remove(self) -> None:
        self._file.unlink(missing_ok=True)
