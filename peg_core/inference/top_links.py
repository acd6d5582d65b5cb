"""The candidates that score highest and are no links yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.graph_ids import GraphIds
from peg_core.heuristics.neighbourhood_overlap import COMMON_NEIGHBOURS, neighbourhood_overlap

# Rows taken at first for every one that is wanted: some of them are links.
FIRST_SHARE = 20
GROWTH = 8


@dataclass(frozen=True)
class TopLinks:
    """Pairs without a link, the best first.

    Args:
        names: The ids of both ends, as in the candidates.
        source, target: The same as numbers of nodes, [count] each.
        scores: [count].
        common_neighbours: In the graph, [count].
    """

    names: list[tuple[Any, Any]]
    source: npt.NDArray[np.int64]
    target: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]
    common_neighbours: npt.NDArray[np.int64]


def top_links(
    scored: pl.LazyFrame, graph: GraphStore, ids: GraphIds, *, count: int, score: str = "score"
) -> TopLinks:
    """The best pairs that the graph does not have yet, each once.

    Args:
        scored: Scored candidates; the first two columns are the ids of the ends.
        graph: All known edges.
        count: How many; fewer where the candidates run out.
        score: Column that ranks them; null: no score.
    """
    first, second = scored.collect_schema().names()[:2]
    rows = scored.select(first, second, pl.col(score).cast(pl.Float64).fill_nan(None)).drop_nulls()
    taken = count * FIRST_SHARE
    while True:
        best = rows.top_k(taken, by=score).collect(engine="streaming")
        best = best.sort([score, first, second], descending=[True, False, False])
        source, target = (
            kind.lookup(best[name].to_arrow())
            for name, kind in zip((first, second), ids.ends, strict=True)
        )
        kept = _new_pairs(graph, source, target)[:count]
        if len(kept) == count or len(best) < taken:
            break
        taken *= GROWTH
    source, target = source[kept], target[kept]
    common = neighbourhood_overlap(graph, source, target)[:, COMMON_NEIGHBOURS]
    return TopLinks(
        [*zip(best[first].gather(kept), best[second].gather(kept), strict=True)],
        source,
        target,
        best[score].gather(kept).to_numpy(),
        common.round().astype(np.int64),
    )


def _new_pairs(
    graph: GraphStore, source: npt.NDArray[np.int64], target: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Rows that are no link of the graph and, where direction says nothing, no earlier pair."""
    known = (source >= 0) & (target >= 0) & (source != target)
    new = np.flatnonzero(known)
    new = new[~graph.contains_link(source[new], target[new])]
    ends = np.stack([source[new], target[new]], axis=1)
    if not graph.is_directed:
        ends.sort(axis=1)
    _, once = np.unique(ends, axis=0, return_index=True)
    return new[np.sort(once)]
