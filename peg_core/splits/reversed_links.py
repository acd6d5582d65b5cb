"""Links read the wrong way round: where links have a direction, non-links that ask for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import GraphStore
from peg_core.splits.pair_hash import pair_hash

IntArray = npt.NDArray[np.integer[Any]]
Mask = npt.NDArray[np.bool_]
Pairs = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]

# Of so many links the reverse is a non-link, where it is no link itself.
REVERSED_SHARE = 0.25


def has_reverses(graph: GraphStore) -> bool:
    """Whether the reverse of a link of the predicted relation is a pair that might be one."""
    return graph.relations is not None and graph.relations.has_reverses


def one_way(graph: GraphStore, source: IntArray, target: IntArray) -> Mask:
    """Which links have a reverse that is possible and no link, [num_links]."""
    if not has_reverses(graph):
        return np.zeros(len(source), dtype=np.bool_)
    return ~graph.contains_link(target, source)


def choose_reversed(
    graph: GraphStore, source: IntArray, target: IntArray, *, seed: int
) -> npt.NDArray[np.bool_]:
    """Which links give their reverse as a non-link, [num_links]: that depends on the link alone."""
    chosen = one_way(graph, source, target)
    if chosen.any():
        words = pair_hash(source, target, seed=seed, purpose="reversed links")
        chosen &= words < np.uint64(int(REVERSED_SHARE * 2**64))
    return chosen


def reversed_links(graph: GraphStore, source: IntArray, target: IntArray, *, seed: int) -> Pairs:
    """The reverses of these, [num_chosen]."""
    chosen = choose_reversed(graph, source, target, seed=seed)
    return target[chosen].astype(np.int64), source[chosen].astype(np.int64)
