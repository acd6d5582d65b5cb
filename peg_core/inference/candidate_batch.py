"""Candidate pairs as a table in, the same table with scores out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from peg_core.errors import InputError
from peg_core.graph.ids.graph_ids import KindIds
from peg_core.inference.pair_reasons import (
    COLD_NODE,
    FINE,
    SELF_PAIR,
    Codes,
    count_reasons,
    describe_row,
    reason_codes,
    reason_names,
)

if TYPE_CHECKING:
    from peg_core.inference.pair_scoring import PairScorer

HISTOGRAM_BINS = 50

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
        on_unknown: What happens to a pair that cannot be scored: its scores are null and
            ``reason`` says why, or the row is left out, or all stops.
        calibration: Slope and intercept: ``score`` is the logistic function of
            ``slope * logit + intercept``.
        scores_cold: Whether a pair with a node that has no edge gets a score: features tell
            something about such a node.
    """

    source: str = "src"
    target: str = "dst"
    written: tuple[ScoreColumn, ...] = ("score",)
    on_unknown: OnUnknown = "null"
    calibration: tuple[float, float] = (1.0, 0.0)
    scores_cold: bool = True

    @property
    def added(self) -> list[str]:
        """The columns that a candidate file must not have."""
        return [*self.written, *(["reason"] if self.on_unknown == "null" else [])]


class ScoredBatch(NamedTuple):
    """A table with scores, and what to count.

    Args:
        table: Ids, scores, then the other columns of the candidates.
        reasons: Pairs by reason, as ``COUNTS`` calls them.
        histogram: Of the scores between 0 and 1, [HISTOGRAM_BINS].
    """

    table: pa.Table
    reasons: dict[str, int]
    histogram: npt.NDArray[np.int64]


def score_batch(
    table: pa.Table,
    columns: ScoreColumns,
    ends: tuple[KindIds, KindIds],
    scorer: PairScorer,
    *,
    location: str,
) -> ScoredBatch:
    """Score one table.

    Args:
        ends: The ids of both ends of a predicted link.
        location: Names the file of the table in errors.
    """
    source = ends[0].lookup(table[columns.source])
    target = ends[1].lookup(table[columns.target])
    known = (source >= 0) & (target >= 0)
    codes = reason_codes(source, target, _null_ids(table, columns), scorer.cold_nodes)
    scored = (codes == FINE) | (codes == COLD_NODE) if columns.scores_cold else codes == FINE
    if columns.on_unknown == "error" and not scored.all():
        raise _no_score(table, columns, codes, int(np.argmin(scored)), source, location)
    if known.all():
        logits = scorer.logits(source, target)
    else:
        logits = np.zeros(len(table), dtype=np.float32)
        logits[known] = scorer.logits(source[known], target[known])
    scores = np.empty(len(table), dtype=np.float32)
    histogram = np.zeros(HISTOGRAM_BINS, dtype=np.int64)
    calibrate(logits, *columns.calibration, scored, scores, histogram)
    written = _with_columns(table, columns, {"score": scores, "logit": logits}, scored, codes)
    return ScoredBatch(written, count_reasons(codes), histogram)


@numba.njit(cache=True, nogil=True)
def calibrate(
    logits: FloatArray,
    slope: float,
    intercept: float,
    counted: npt.NDArray[np.bool_],
    scores: FloatArray,
    histogram: npt.NDArray[np.int64],
) -> None:
    """Probabilities of logits, [num_pairs]; some of them are counted, too."""
    one = np.float32(1)
    for i in range(len(logits)):
        value = np.float32(slope * logits[i] + intercept)
        scores[i] = one / (one + np.exp(-value))
        if counted[i] and scores[i] >= 0:  # not a number counts nowhere
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
    scored: npt.NDArray[np.bool_],
    codes: Codes,
) -> pa.Table:
    """Ids first, then scores, then the candidates' other columns."""
    ends = (columns.source, columns.target)
    mask = None if scored.all() else ~scored
    built: dict[str, Any] = {name: table[name] for name in ends}
    built |= {name: pa.array(values[name], mask=mask) for name in columns.written}
    if columns.on_unknown == "null":
        built["reason"] = reason_names(codes)
    built |= {name: table[name] for name in table.column_names if name not in ends}
    whole = pa.table(built)
    drops = columns.on_unknown == "drop" and mask is not None
    return whole.filter(pa.array(scored)) if drops else whole


def _no_score(
    table: pa.Table,
    columns: ScoreColumns,
    codes: Codes,
    row: int,
    source: npt.NDArray[np.int64],
    location: str,
) -> InputError:
    ends = (columns.source, columns.target)
    column, other = ends if source[row] < 0 or codes[row] in (SELF_PAIR, COLD_NODE) else ends[::-1]
    found, opposite = (table[name][row].as_py() for name in (column, other))
    what = describe_row(int(codes[row]), found, other=opposite)
    return InputError(
        f"column {column!r} of {location} holds {what}, and `on_unknown` is error; remove the row, "
        "or set `on_unknown` to null (score and reason tell) or to drop"
    )
