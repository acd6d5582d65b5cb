"""Pairs without an edge."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.errors import GraphTooSmall
from peg_core.graph.graph_store import GraphStore

IntArray = npt.NDArray[np.integer[Any]]


def sample_non_edges(
    graph: GraphStore, count: int, *, rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """``count`` distinct pairs source < target that are not edges, uniformly drawn."""
    n = graph.num_nodes
    available = n * (n - 1) // 2 - graph.num_edges
    if count > available:
        raise GraphTooSmall.for_negatives(asked=count, available=available)
    if 2 * count > available:
        return _from_all_pairs(graph, count, rng=rng)
    keys = np.zeros(0, dtype=np.int64)
    while len(keys) < count:
        drawn = rng.integers(0, n, size=(int(1.3 * (count - len(keys))) + 16, 2))
        source, target = drawn.min(axis=1), drawn.max(axis=1)
        keep = (source != target) & ~graph.contains(source, target)
        keys = _unique_in_order(np.concatenate([keys, source[keep] * n + target[keep]]))
    keys = keys[:count]
    return keys // n, keys % n


def _from_all_pairs(
    graph: GraphStore, count: int, *, rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """For small dense graphs, where drawing again and again would not end."""
    source, target = np.triu_indices(graph.num_nodes, k=1)
    free = np.flatnonzero(~graph.contains(source, target))
    chosen = rng.choice(free, size=count, replace=False)
    return source[chosen].astype(np.int64), target[chosen].astype(np.int64)


def _unique_in_order(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    _, first = np.unique(keys, return_index=True)
    return keys[np.sort(first)]
