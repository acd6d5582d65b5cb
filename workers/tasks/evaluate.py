"""Evaluation as Ray tasks: pairs are scored in parts, then every method is ranked.

A method is a model or the heuristics together. Both give a table of scores, a column per
score, so that all that follows does not know which it was.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from peg_core.atomic_file import atomic_path, write_array
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.node_ids import NodeIds
from peg_core.heuristics import heuristic_scores
from peg_core.metrics.bootstrap import Bootstrap, Interval
from peg_core.metrics.calibration import Calibration
from peg_core.metrics.per_link_ranking import link_ranks
from peg_core.metrics.reliability import reliability_sums
from peg_core.metrics.score_runs import ScoreRuns
from workers.task_map import Result
from workers.tasks.model_scorer import ScorerRequest
from workers.tasks.negatives import ANCHORS_PER_PART, count_parts, open_part

IntArray = npt.NDArray[np.integer[Any]]
Scores = dict[str, npt.NDArray[np.float32]]

# Of one task; independent of the workers, so that a rerun finds its shards.
ROWS_PER_PART = 1_000_000
LINKS_PER_STEP = 4_096
MODEL_COLUMN = "logit"
# Folder of the scores of the split's own test pairs.
TEST_PAIRS = "test_pairs"


@dataclass(frozen=True)
class MethodRequest:
    """What scores pairs: a model, or heuristics.

    Args:
        graph: The training graph.
        nodes: Folder of the ingested graph, for the ids.
        columns: Names for the two ends.
        out: Folder for the scores.
        scorer: A model; none: heuristics.
        calibration: Folder of the model's calibration.
        heuristics: Their names.
    """

    graph: Path
    nodes: Path
    columns: tuple[str, str]
    out: Path
    scorer: ScorerRequest | None = None
    calibration: Path | None = None
    heuristics: tuple[str, ...] = field(default=())

    def scores(self, source: IntArray, target: IntArray) -> Scores:
        """By column, [num_pairs] each; higher is more likely a link."""
        if self.scorer is not None:
            return {MODEL_COLUMN: self.scorer.open().logits(source, target)}
        graph = GraphStore.open(self.graph)
        found = heuristic_scores(self.heuristics, graph, source, target)
        return {name: scores.astype(np.float32) for name, scores in found.items()}

    @property
    def score_columns(self) -> tuple[str, ...]:
        return self.heuristics if self.scorer is None else (MODEL_COLUMN,)


def score_pairs_task(request: MethodRequest, table: Path, name: str, part: int) -> Result:
    """Score some rows of a table of labelled pairs, source, target and label."""
    rows = pl.scan_parquet(table).slice(part * ROWS_PER_PART, ROWS_PER_PART).collect()
    source, target, label = (rows[key].to_numpy() for key in ("source", "target", "label"))
    scores = request.scores(source, target)
    node_ids = NodeIds.open(request.nodes)
    columns: dict[str, Any] = {
        request.columns[0]: node_ids.take(source),
        request.columns[1]: node_ids.take(target),
    }
    result: Result = {"rows": len(rows), "method": request.out.name, "table": name}
    if request.calibration is not None:
        chance = Calibration.open(request.calibration).probabilities(scores[MODEL_COLUMN])
        columns["score"] = chance
        result["reliability"] = reliability_sums(chance, label).tolist()
    columns |= {**scores, "label": label}
    with atomic_path(request.out / name / f"part-{part:06}.parquet") as temporary:
        pq.write_table(pa.table(columns), temporary, compression="zstd")
    return result


def score_hard_task(request: MethodRequest, negatives: Path, name: str, part: int) -> Result:
    """Score the hard non-links of some anchors, [num_scores, num_anchors, count]."""
    anchors, file = open_part(negatives, part)
    nodes = np.load(file)
    there = nodes >= 0
    source = np.repeat(anchors, there.sum(axis=1))
    scores = request.scores(source, nodes[there].astype(np.int64))
    out = np.full((len(scores), *nodes.shape), np.nan, dtype=np.float32)
    for place, values in enumerate(scores.values()):
        out[place][there] = values
    write_array(request.out / name / f"part-{part:06}.npy", out)
    return {"pairs": len(source)}


@dataclass(frozen=True)
class RankRequest:
    """Which scores are ranked, and what is measured.

    Args:
        out: Folder of a method, with its scores.
        column: The score.
        place: Its place among the scores of the method.
        hits: K of Hits@K.
        seed: Of the bootstrap.
    """

    out: Path
    column: str
    place: int
    hits: Sequence[int]
    bootstrap: Bootstrap
    seed: int


def rank_pooled_task(request: RankRequest, name: str) -> Result:
    """Metrics of links against all non-links of a scored table; every score is read once."""
    scratch = request.out / f"runs-{name}-{request.column}"
    shutil.rmtree(scratch, ignore_errors=True)
    runs = ScoreRuns(scratch)
    for file in sorted((request.out / name).glob("part-*.parquet")):
        rows = pl.read_parquet(file, columns=[request.column, "label"])
        scores, label = rows[request.column].to_numpy(), rows["label"].to_numpy()
        runs.add(scores[label == 1], scores[label == 0])
    found = request.bootstrap.ranking(
        runs.groups(), hits=request.hits, pairs=runs.num_scores, seed=request.seed
    )
    shutil.rmtree(scratch)
    return _result(found)


def rank_hard_task(request: RankRequest, links: Path, hard: str, negatives: Path) -> Result:
    """Metrics of links against the hard non-links of their own two ends.

    Args:
        links: The table of labelled pairs whose scores stand in ``TEST_PAIRS``.
        hard: Name of the folder with the scores of the hard non-links.
    """
    table = pl.read_parquet(links).filter(pl.col("label") == 1)
    scored = pl.read_parquet(
        sorted((request.out / TEST_PAIRS).glob("part-*.parquet")),
        columns=[request.column, "label"],
    )
    positive = scored.filter(pl.col("label") == 1)[request.column].to_numpy()
    anchors = np.load(negatives / "anchors.npy")
    parts = [
        np.load(request.out / hard / f"part-{part:06}.npy", mmap_mode="r")[request.place]
        for part in range(count_parts(negatives))
    ]
    ends = [np.searchsorted(anchors, table[name].to_numpy()) for name in ("source", "target")]
    ranks = np.empty(len(positive))
    for start in range(0, len(positive), LINKS_PER_STEP):
        step = slice(start, start + LINKS_PER_STEP)
        negative = np.concatenate([_rows(parts, end[step]) for end in ends], axis=1)
        ranks[step] = link_ranks(positive[step], negative)
    return _result(request.bootstrap.per_link(ranks, hits=request.hits, seed=request.seed))


def _rows(
    parts: list[npt.NDArray[np.float32]], rows: npt.NDArray[np.int64]
) -> npt.NDArray[np.float32]:
    """Rows of an array that lies in parts, [num_rows, count]."""
    out = np.empty((len(rows), parts[0].shape[1]), dtype=np.float32)
    place, row = np.divmod(rows, ANCHORS_PER_PART)
    for part in np.unique(place):
        chosen = place == part
        out[chosen] = parts[part][row[chosen]]
    return out


def _result(found: dict[str, Interval]) -> Result:
    """JSON-ready: a value, and the ends of its interval or None."""
    return {
        name: [item.value, *(None if np.isnan(end) else end for end in (item.low, item.high))]
        for name, item in found.items()
    }
