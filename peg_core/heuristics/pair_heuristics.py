"""The heuristics by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import GraphStore
from peg_core.heuristics.katz import katz_index
from peg_core.heuristics.neighbourhood_overlap import (
    ADAMIC_ADAR,
    COMMON_NEIGHBOURS,
    RESOURCE_ALLOCATION,
    neighbourhood_overlap,
)
from peg_core.heuristics.personalised_pagerank import pagerank_proximity

IntArray = npt.NDArray[np.integer[Any]]
Scores = npt.NDArray[np.floating[Any]]
Heuristic = Callable[[GraphStore, IntArray, IntArray], Scores]

OVERLAPS = {
    "common_neighbours": COMMON_NEIGHBOURS,
    "adamic_adar": ADAMIC_ADAR,
    "resource_allocation": RESOURCE_ALLOCATION,
}


def preferential_attachment(graph: GraphStore, source: IntArray, target: IntArray) -> Scores:
    """Product of the degrees, [num_pairs]."""
    degrees = graph.degrees.astype(np.float64)
    return degrees[source] * degrees[target]


def _overlap(column: int) -> Heuristic:
    return lambda graph, source, target: neighbourhood_overlap(graph, source, target)[:, column]


HEURISTICS: dict[str, Heuristic] = {
    **{name: _overlap(column) for name, column in OVERLAPS.items()},
    "katz": katz_index,
    "personalised_pagerank": pagerank_proximity,
    "preferential_attachment": preferential_attachment,
}


def heuristic_scores(
    names: Iterable[str], graph: GraphStore, source: IntArray, target: IntArray
) -> dict[str, Scores]:
    """Scores of every pair by every heuristic, [num_pairs] each; overlaps are counted once."""
    names = list(names)
    found: dict[str, Scores] = {}
    if OVERLAPS.keys() & set(names):
        overlap = neighbourhood_overlap(graph, source, target)
        found = {name: overlap[:, column] for name, column in OVERLAPS.items()}
    return {
        name: found[name] if name in found else HEURISTICS[name](graph, source, target)
        for name in names
    }
