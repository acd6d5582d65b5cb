"""Test links ranked among the given non-links of their own, as a Ray task."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from peg_core.artifacts.evaluation import TEST_PAIRS
from peg_core.metrics.per_link_ranking import LinkRanks
from peg_core.splits.held_out_pairs import LINK
from peg_core.splits.population import cold_pairs
from workers.tasks.evaluate import (
    ROWS_PER_PART,
    PairSubset,
    RankRequest,
    RankResult,
    as_result,
    direction,
)

Scores = npt.NDArray[np.float32]


def rank_linked_task(
    request: RankRequest, links: Path, subset: PairSubset | None = None
) -> RankResult:
    """Metrics of links against their own non-links; memory grows with the links alone.

    MRR and Hits@K take the mean of the best and the worst rank that ties allow; the MRR of either
    stands beside.

    Args:
        links: The table of labelled pairs whose scores stand in ``TEST_PAIRS``.
        subset: Take links with a cold end, or those without one; their non-links are all taken.
    """
    positive = np.concatenate([scores[label == 1] for scores, label, _ in _parts(request, links)])
    ranks = LinkRanks.of_lists(
        positive,
        ((scores[label == 0], link[label == 0]) for scores, label, link in _parts(request, links)),
    )
    chosen = np.ones(len(positive), dtype=bool) if subset is None else _links_of(subset)
    options: dict[str, Any] = {"seed": request.seed}
    found = request.bootstrap.per_link(ranks.mean[chosen], hits=request.hits, **options)
    for name, values in (("optimistic", ranks.optimistic), ("pessimistic", ranks.pessimistic)):
        found[f"mrr_{name}"] = request.bootstrap.per_link(values[chosen], hits=[], **options)["mrr"]
    return as_result(found | direction(request, subset))


def _parts(
    request: RankRequest, links: Path
) -> Iterator[tuple[Scores, npt.NDArray[np.uint8], npt.NDArray[np.int64]]]:
    """Scores, labels and links of the pairs, a part at a time."""
    for part, file in enumerate(request.scores.open().pair_files(TEST_PAIRS)):
        rows = pl.read_parquet(file, columns=[request.column, "label"])
        table = pl.scan_parquet(links).slice(part * ROWS_PER_PART, ROWS_PER_PART)
        link = table.select(LINK).collect()[LINK].to_numpy()
        yield rows[request.column].to_numpy(), rows["label"].to_numpy(), link


def _links_of(subset: PairSubset) -> npt.NDArray[np.bool_]:
    """Which links belong to a subset, [num_links]."""
    table = pl.scan_parquet(subset.table).filter(pl.col("label") == 1)
    ends = table.select("source", "target").collect()
    cold = cold_pairs(subset.graph.open(), *(end.to_numpy() for end in ends))
    return cold if subset.cold else ~cold
