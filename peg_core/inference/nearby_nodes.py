"""Nodes two steps away, the most promising ones, at a bounded cost."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import GraphStore

IntArray = npt.NDArray[np.integer[Any]]
FloatArray = npt.NDArray[np.float64]

NO_NODE = -1
# The weight of a node that is known, or the one asked for.
BLOCKED = -1.0
# Of a longer row this many neighbours are looked at, evenly spread: a hub costs no more.
ROW_LIMIT = 1_000


def nearby_nodes(
    graph: GraphStore, known: GraphStore, nodes: IntArray, *, count: int
) -> npt.NDArray[np.int64]:
    """Nodes that share a neighbour, by resource allocation, [num_nodes, count].

    Ties go to the smaller index; rows end with ``NO_NODE``.

    Args:
        graph: The edges that are walked.
        known: Its neighbours are left out.
        nodes: Where to start.
        count: Nodes wanted at most.
    """
    out = np.full((len(nodes), count), NO_NODE, dtype=np.int64)
    places = 1 << (2 * ROW_LIMIT**2).bit_length()  # twice the nodes that one node can meet
    places = min(places, graph.num_nodes)
    _nearby(
        (graph.indptr, graph.indices),
        (known.indptr, known.indices),
        np.asarray(nodes, dtype=np.int64),
        ROW_LIMIT,
        np.full(places, NO_NODE, dtype=np.int64),
        out,
    )
    return out


@numba.njit(cache=True, nogil=True)
def _nearby(
    graph: tuple[IntArray, IntArray],
    known: tuple[IntArray, IntArray],
    nodes: IntArray,
    row_limit: int,
    keys: IntArray,
    out: IntArray,
) -> None:
    """Fill the rows of ``out``; ``keys`` is a table of nodes met, empty before and after.

    In a large graph it is smaller than an array over all nodes: what a task takes and clears
    does not grow with them.
    """
    indptr, indices = graph
    weight = np.empty(len(keys), dtype=np.float64)
    used = np.empty(len(keys), dtype=np.int64)
    direct = len(keys) == len(indptr) - 1
    for row in range(len(nodes)):
        node = nodes[row]
        taken = known[1][known[0][node] : known[0][node + 1]]
        count = 0
        start, degree = indptr[node], indptr[node + 1] - indptr[node]
        for step in range(min(degree, row_limit)):
            middle = indices[start + step * degree // min(degree, row_limit)]
            first, others = indptr[middle], indptr[middle + 1] - indptr[middle]
            for other in range(min(others, row_limit)):
                found = np.int64(indices[first + other * others // min(others, row_limit)])
                slot = found if direct else find_slot(found, keys)
                if keys[slot] == NO_NODE:
                    keys[slot] = found
                    weight[slot] = BLOCKED if found == node or _holds(taken, found) else 0.0
                    used[count] = slot
                    count += 1
                if weight[slot] != BLOCKED:
                    weight[slot] += 1.0 / others
        slots = used[:count]
        slots = slots[weight[slots] != BLOCKED]
        ordered = np.sort(keys[slots])
        for place in range(len(ordered)):
            slots[place] = ordered[place] if direct else find_slot(ordered[place], keys)
        best = np.argsort(-weight[slots], kind="mergesort")[: out.shape[1]]
        out[row, : len(best)] = ordered[best]
        keys[used[:count]] = NO_NODE


@numba.njit(cache=True, nogil=True, inline="always")
def find_slot(node: np.int64, keys: IntArray) -> np.int64:
    """Where a node stands, or would stand, in a table with free places, a power of two."""
    mask = np.uint64(len(keys) - 1)
    spread = np.uint64(node) * np.uint64(0x9E3779B97F4A7C15)
    slot = (spread >> np.uint64(32)) & mask
    while keys[slot] != NO_NODE and keys[slot] != node:
        slot = (slot + np.uint64(1)) & mask
    return np.int64(slot)


@numba.njit(cache=True, nogil=True, inline="always")
def _holds(row: IntArray, node: np.int64) -> bool:
    """Whether a sorted row has a node."""
    place = np.searchsorted(row, node)
    return bool(place < len(row) and row[place] == node)
