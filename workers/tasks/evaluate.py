"""Evaluation as Ray tasks: pairs are scored in parts, then every method is ranked.

A method is a model or the heuristics together. Both give a table of scores, a column per
score, so that all that follows does not know which it was.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from peg_core.artifacts.evaluation import TEST_PAIRS, MethodScores
from peg_core.artifacts.ranking_negatives import ANCHORS_PER_PART, RankingNegatives
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.graph_ids import GraphIds
from peg_core.heuristics import heuristic_scores
from peg_core.metrics.bootstrap import Bootstrap, Interval
from peg_core.metrics.calibration import Calibration
from peg_core.metrics.direction import DirectionCounts
from peg_core.metrics.per_link_ranking import link_ranks
from peg_core.metrics.reliability import reliability_sums
from peg_core.metrics.score_runs import ScoreRuns
from peg_core.splits.held_out_pairs import pair_chunks
from peg_core.splits.partners import Partners
from peg_core.splits.population import Population, cold_pairs, describe_population
from peg_core.splits.reversed_links import has_reverses
from workers.artifact_ref import ArtifactRef
from workers.embedded_graph_ref import ScorerRef

IntArray = npt.NDArray[np.integer[Any]]
Scores = dict[str, npt.NDArray[np.float32]]

# Of one task; independent of the workers, so that a rerun finds its shards.
ROWS_PER_PART = 1_000_000
LINKS_PER_STEP = 4_096
MODEL_COLUMN = "logit"
# Ends the name of a score of (target, source).
REVERSE = "_reverse"

# Metrics by name: a value, and the ends of its interval or None.
RankResult = dict[str, list[float | None]]


class PairsResult(TypedDict):
    """Which rows of which table were scored by which method, and how reliable chances are."""

    rows: int
    method: str
    table: str
    reliability: NotRequired[list[list[float]]]


class HardResult(TypedDict):
    pairs: int


@dataclass(frozen=True)
class MethodRequest:
    """What scores pairs: a model, or heuristics.

    Args:
        graph: The training graph.
        nodes: The ids of the graph.
        columns: Names for the two ends.
        out: Where the scores go.
        scorer: A model; none: heuristics.
        calibration: Of the model.
        heuristics: Their names.
        known: All known edges where links are directed: links whose reverse is not among them
            are scored both ways.
    """

    graph: ArtifactRef[GraphStore]
    nodes: ArtifactRef[GraphIds]
    columns: tuple[str, str]
    out: ArtifactRef[MethodScores]
    scorer: ScorerRef | None = None
    calibration: ArtifactRef[Calibration] | None = None
    heuristics: tuple[str, ...] = field(default=())
    known: ArtifactRef[GraphStore] | None = None

    def scores(self, source: IntArray, target: IntArray) -> Scores:
        """By column, [num_pairs] each; higher is more likely a link."""
        if self.scorer is not None:
            return {MODEL_COLUMN: self.scorer.open().logits(source, target)}
        found = heuristic_scores(self.heuristics, self.graph.open(), source, target)
        return {name: scores.astype(np.float32) for name, scores in found.items()}

    @property
    def score_columns(self) -> tuple[str, ...]:
        return self.heuristics if self.scorer is None else (MODEL_COLUMN,)


def score_pairs_task(request: MethodRequest, table: Path, name: str, part: int) -> PairsResult:
    """Score some rows of a table of labelled pairs, source, target and label."""
    rows = pl.scan_parquet(table).slice(part * ROWS_PER_PART, ROWS_PER_PART).collect()
    source, target, label = (rows[key].to_numpy() for key in ("source", "target", "label"))
    scores = request.scores(source, target)
    ends = request.nodes.open().ends
    columns: dict[str, Any] = {
        request.columns[0]: ends[0].take(source),
        request.columns[1]: ends[1].take(target),
    }
    result: PairsResult = {"rows": len(rows), "method": request.out.part, "table": name}
    if request.calibration is not None:
        chance = request.calibration.open().probabilities(scores[MODEL_COLUMN])
        columns["score"] = chance
        result["reliability"] = reliability_sums(chance, label).tolist()
    columns |= {**scores, "label": label}
    if name == TEST_PAIRS and request.known is not None:
        one_way = (label == 1) & ~request.known.open().contains_link(target, source)
        columns |= _reverse_scores(request, source, target, one_way)
    request.out.open().write_pairs(name, part, pa.table(columns))
    return result


def _reverse_scores(
    request: MethodRequest, source: IntArray, target: IntArray, chosen: npt.NDArray[np.bool_]
) -> Scores:
    """Scores of chosen pairs with their ends exchanged, not a number for the others."""
    columns = {}
    for name, values in request.scores(target[chosen], source[chosen]).items():
        columns[f"{name}{REVERSE}"] = np.full(len(source), np.nan, dtype=np.float32)
        columns[f"{name}{REVERSE}"][chosen] = values
    return columns


def score_hard_task(
    request: MethodRequest, negatives: ArtifactRef[RankingNegatives], name: str, part: int
) -> HardResult:
    """Score the hard non-links of some anchors, [num_scores, num_anchors, count].

    Where links have a direction, [num_scores, num_anchors, 2 * count]: the anchor as the source
    of all of them, then as the target.
    """
    opened = negatives.open()
    anchors, nodes = opened.part_anchors(part), opened.part(part)
    there = nodes >= 0
    anchor = np.repeat(anchors, there.sum(axis=1))
    other = nodes[there].astype(np.int64)
    found = []
    for source, target in _roles(request.graph.open(), anchor, other):
        scores = request.scores(source, target)
        out = np.full((len(scores), *nodes.shape), np.nan, dtype=np.float32)
        for row, values in enumerate(scores.values()):
            out[row][there] = values
        found.append(out)
    request.out.open().write_hard(name, part, np.concatenate(found, axis=2))
    return {"pairs": len(anchor)}


def _roles(graph: GraphStore, anchor: IntArray, other: IntArray) -> list[tuple[IntArray, IntArray]]:
    """Source and target of pairs; of pairs that can be links both ways, both."""
    if has_reverses(graph):
        return [(anchor, other), (other, anchor)]
    partners = Partners.of(graph)
    is_source = (anchor >= partners.first_anchor) & (anchor < partners.last_anchor)
    return [(np.where(is_source, anchor, other), np.where(is_source, other, anchor))]


@dataclass(frozen=True)
class RankRequest:
    """Which scores are ranked, and what is measured.

    Args:
        scores: Of a method.
        column: The score.
        number: Of that score among those of the method.
        hits: K of Hits@K.
        seed: Of the bootstrap.
    """

    scores: ArtifactRef[MethodScores]
    column: str
    number: int
    hits: Sequence[int]
    bootstrap: Bootstrap
    seed: int


@dataclass(frozen=True)
class PairSubset:
    """The pairs of a table that have a cold end, or those that have none.

    Args:
        table: Source, target and label, in the order of the scores.
        graph: The training graph, where a cold node has no edge.
        cold: Which of the two.
    """

    table: Path
    graph: ArtifactRef[GraphStore]
    cold: bool

    def rows(self, part: int) -> npt.NDArray[np.bool_]:
        """Which rows of a part of the table belong to it."""
        table = pl.scan_parquet(self.table).slice(part * ROWS_PER_PART, ROWS_PER_PART)
        ends = table.select("source", "target").collect()
        cold = cold_pairs(self.graph.open(), *(end.to_numpy() for end in ends))
        return cold if self.cold else ~cold


def population_task(table: Path, graph: ArtifactRef[GraphStore]) -> Population:
    """Whom the pairs of a table are about."""
    return describe_population(graph.open(), pair_chunks(table))


def rank_pooled_task(
    request: RankRequest, name: str, subset: PairSubset | None = None
) -> RankResult:
    """Metrics of links against all non-links of a scored table; every score is read once."""
    opened = request.scores.open()
    kind = "" if subset is None else f"-{'cold' if subset.cold else 'warm'}"
    scratch = opened.scratch(name + kind, request.column)
    shutil.rmtree(scratch, ignore_errors=True)
    runs = ScoreRuns(scratch)
    for part, file in enumerate(opened.pair_files(name)):
        rows = pl.read_parquet(file, columns=[request.column, "label"])
        if subset is not None:
            rows = rows.filter(subset.rows(part))
        scores, label = rows[request.column].to_numpy(), rows["label"].to_numpy()
        runs.add(scores[label == 1], scores[label == 0])
    found = request.bootstrap.ranking(
        runs.groups(), hits=request.hits, pairs=runs.num_scores, seed=request.seed
    )
    shutil.rmtree(scratch)
    return as_result(found | (direction(request, subset) if name == TEST_PAIRS else {}))


def rank_hard_task(
    request: RankRequest, links: Path, hard: str, negatives: ArtifactRef[RankingNegatives]
) -> RankResult:
    """Metrics of links against the hard non-links of their own two ends.

    Args:
        links: The table of labelled pairs whose scores stand in ``TEST_PAIRS``.
        hard: Name of the scores of the hard non-links.
    """
    table = pl.read_parquet(links).filter(pl.col("label") == 1)
    opened, scores = negatives.open(), request.scores.open()
    scored = scores.pairs(TEST_PAIRS, [request.column, "label"])
    positive = scored.filter(pl.col("label") == 1)[request.column].to_numpy()
    anchors = opened.anchors()
    parts = [scores.hard(hard, part, request.number) for part in range(opened.num_parts)]
    ends = [np.searchsorted(anchors, table[name].to_numpy()) for name in ("source", "target")]
    count = opened.part(0).shape[1] if parts else 0
    columns = slice(None, count), slice(-count, None)  # of a source, of a target
    ranks = np.empty(len(positive))
    for start in range(0, len(positive), LINKS_PER_STEP):
        step = slice(start, start + LINKS_PER_STEP)
        negative = np.concatenate(
            [_rows(parts, end[step])[:, own] for end, own in zip(ends, columns, strict=True)],
            axis=1,
        )
        ranks[step] = link_ranks(positive[step], negative)
    found = request.bootstrap.per_link(ranks, hits=request.hits, seed=request.seed)
    return as_result(found | direction(request))


def direction(request: RankRequest, subset: PairSubset | None = None) -> dict[str, Interval]:
    """How often test links are above their reverse; empty where links have no direction."""
    counts, columns = DirectionCounts(), [request.column, f"{request.column}{REVERSE}"]
    for part, file in enumerate(request.scores.open().pair_files(TEST_PAIRS)):
        if columns[1] not in pl.read_parquet_schema(file):
            return {}
        rows = pl.read_parquet(file, columns=columns)
        if subset is not None:
            rows = rows.filter(subset.rows(part))
        counts.add(*(rows[column].to_numpy() for column in columns))
    return counts.metrics(request.bootstrap, seed=request.seed)


def _rows(
    parts: list[npt.NDArray[np.float32]], rows: npt.NDArray[np.int64]
) -> npt.NDArray[np.float32]:
    """Rows of an array that lies in parts, [num_rows, count]."""
    out = np.empty((len(rows), parts[0].shape[1]), dtype=np.float32)
    number, row = np.divmod(rows, ANCHORS_PER_PART)
    for part in np.unique(number):
        chosen = number == part
        out[chosen] = parts[part][row[chosen]]
    return out


def as_result(found: dict[str, Interval]) -> RankResult:
    """JSON-ready: a value, and the ends of its interval or None."""
    return {
        name: [item.value, *(None if np.isnan(end) else end for end in (item.low, item.high))]
        for name, item in found.items()
    }
