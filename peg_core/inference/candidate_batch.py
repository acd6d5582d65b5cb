"""Candidate pairs as a table in, the same table with scores out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from peg_core.errors import InputError
from peg_core.graph.id_types import normalise_ids
from peg_core.graph.node_ids import NodeIds
from peg_core.inference.pair_scoring import PairScorer

HISTOGRAM_BINS = 50
UNKNOWN_NODE, NULL_ID = "unknown_node", "null_id"

ScoreColumn = Literal["score", "logit"]
OnUnknown = Literal["null", "drop", "error"]
FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class ScoreColumns:
    """Which columns are read and written.

    Args:
        source: Column with the id of one end of a pair.
        target: Column with the id of the other end.
        written: What is written of a pair, in this order.
        on_unknown: What happens to a pair with an id that is null or not in the graph: its
            scores are null and ``reason`` says why, or the row is left out, or all stops.
        calibration: Slope and intercept: ``score`` is the logistic function of
            ``slope * logit + intercept``.
    """

    source: str = "src"
    target: str = "dst"
    written: tuple[ScoreColumn, ...] = ("score",)
    on_unknown: OnUnknown = "null"
    calibration: tuple[float, float] = (1.0, 0.0)

    @property
    def added(self) -> list[str]:
        """The columns that a candidate file must not have."""
        return [*self.written, *(["reason"] if self.on_unknown == "null" else [])]


class ScoredBatch(NamedTuple):
    """A table with scores, and what to count.

    Args:
        table: Ids, scores, then the other columns of the candidates.
        unknown: Pairs with an id that the graph does not have.
        null_ids: Pairs with a null id.
        histogram: Of the scores between 0 and 1, [HISTOGRAM_BINS].
    """

    table: pa.Table
    unknown: int
    null_ids: int
    histogram: npt.NDArray[np.int64]


def score_batch(
    table: pa.Table, columns: ScoreColumns, node_ids: NodeIds, scorer: PairScorer, *, location: str
) -> ScoredBatch:
    """Score one table; ``location`` names its file in errors."""
    source = node_ids.lookup(normalise_ids(table[columns.source]))
    target = node_ids.lookup(normalise_ids(table[columns.target]))
    known = (source >= 0) & (target >= 0)
    null = _null_ids(table, columns)
    if known.all():
        logits = scorer.logits(source, target)
    else:
        if columns.on_unknown == "error":
            raise _unknown_id(table, columns, source, target, location)
        logits = np.zeros(len(table), dtype=np.float32)
        logits[known] = scorer.logits(source[known], target[known])
    scores = np.empty(len(table), dtype=np.float32)
    histogram = np.zeros(HISTOGRAM_BINS, dtype=np.int64)
    calibrate(logits, *columns.calibration, known, scores, histogram)
    scored = _with_columns(table, columns, {"score": scores, "logit": logits}, known, null)
    null_ids = int(null.sum())
    return ScoredBatch(scored, int((~known).sum()) - null_ids, null_ids, histogram)


@numba.njit(cache=True, nogil=True)
def calibrate(
    logits: FloatArray,
    slope: float,
    intercept: float,
    known: npt.NDArray[np.bool_],
    scores: FloatArray,
    histogram: npt.NDArray[np.int64],
) -> None:
    """Probabilities of logits, [num_pairs]; those of known pairs are counted, too."""
    one = np.float32(1)
    for i in range(len(logits)):
        value = np.float32(slope * logits[i] + intercept)
        scores[i] = one / (one + np.exp(-value))
        if known[i] and scores[i] >= 0:  # not a number counts nowhere
            histogram[min(int(scores[i] * len(histogram)), len(histogram) - 1)] += 1


def _null_ids(table: pa.Table, columns: ScoreColumns) -> npt.NDArray[np.bool_]:
    null = np.zeros(len(table), dtype=bool)
    for name in (columns.source, columns.target):
        if table[name].null_count:
            null |= table[name].is_null().to_numpy()
    return null


def _with_columns(
    table: pa.Table,
    columns: ScoreColumns,
    values: dict[str, FloatArray],
    known: npt.NDArray[np.bool_],
    null: npt.NDArray[np.bool_],
) -> pa.Table:
    """Ids first, then scores, then the candidates' other columns."""
    ends = (columns.source, columns.target)
    mask = None if known.all() else ~known
    built: dict[str, Any] = {name: table[name] for name in ends}
    built |= {name: pa.array(values[name], mask=mask) for name in columns.written}
    if columns.on_unknown == "null":
        built["reason"] = _reasons(known, null)
    built |= {name: table[name] for name in table.column_names if name not in ends}
    scored = pa.table(built)
    drops = columns.on_unknown == "drop" and mask is not None
    return scored.filter(pa.array(known)) if drops else scored


def _reasons(known: npt.NDArray[np.bool_], null: npt.NDArray[np.bool_]) -> pa.Array:
    if known.all():
        return pa.nulls(len(known), pa.string())
    named = pc.if_else(pa.array(null), NULL_ID, UNKNOWN_NODE)
    return pc.if_else(pa.array(known), pa.scalar(None, pa.string()), named)


def _unknown_id(
    table: pa.Table,
    columns: ScoreColumns,
    source: npt.NDArray[np.int64],
    target: npt.NDArray[np.int64],
    location: str,
) -> InputError:
    row = int(np.argmax((source < 0) | (target < 0)))
    column = columns.source if source[row] < 0 else columns.target
    found = table[column][row].as_py()
    what = "a null" if found is None else f"{found!r}, which is no node of the graph"
    return InputError(
        f"column {column!r} of {location} holds {what}, and `on_unknown` is error; remove the row, "
        "or set `on_unknown` to null (score and reason tell) or to drop"
    )
