"""Nodes that a node might be linked to, found by short walks, at a bounded cost."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import GraphStore
from peg_core.inference.list_side import ListSide
from peg_core.inference.nearby_nodes import NO_NODE, find_slot
from peg_core.kernels.sorted_rows import entry_index

IntArray = npt.NDArray[np.integer[Any]]
FloatArray = npt.NDArray[np.float64]
# The nodes met, in a table that is empty before and after: node, weight, and the places in use.
Met = tuple[IntArray, FloatArray, IntArray]
Flags = npt.NDArray[np.bool_]

# Neighbours of a node that are looked at, evenly spread, and nodes two steps away from which a
# third is taken: a hub costs no more.
ROW_LIMIT = 512


def nearby_partners(
    graph: GraphStore,
    known: GraphStore,
    nodes: IntArray,
    side: ListSide,
    *,
    count: int,
    allowed: Flags | None = None,
) -> npt.NDArray[np.int64]:
    """The partners of nodes that most of their short walks lead to, [num_nodes, count].

    A walk of two steps weighs 1 / degree of the node between, as resource allocation does; one of
    three, which leads from a user to an item where edges join users and items alone, 1 / the
    product of both degrees. A neighbour that is not linked in the predicted way comes first.
    Ties go to the smaller index; rows end with ``NO_NODE``.

    Args:
        graph: The edges that are walked, of all relations.
        known: Links of its predicted relation are left out.
        nodes: Where to start.
        side: Which nodes can be found.
        count: Nodes wanted at most.
        allowed: Which nodes can be found, [num_nodes]; None: all.
    """
    out = np.full((len(nodes), count), NO_NODE, dtype=np.int64)
    places = find_table_size(graph.num_nodes)
    codes, bit = np.zeros(0, dtype=np.uint16), 0
    if known.codes is not None and known.relations is not None:
        codes, bit = known.codes, known.relations.link_bits[side.turned]
    _nearby(
        (graph.indptr, graph.indices),
        (known.indptr, known.indices, codes),
        bit,
        np.asarray(nodes, dtype=np.int64),
        (side.partners.first, side.partners.last),
        np.zeros(0, dtype=np.bool_) if allowed is None else allowed,
        not side.partners.one_kind,
        ROW_LIMIT,
        (np.full(places, NO_NODE, dtype=np.int64), np.zeros(places), np.empty(places, np.int64)),
        out,
    )
    return out


def find_table_size(num_nodes: int) -> int:
    """Places for the nodes that one node can meet: twice as many, or one for every node."""
    return min(1 << (4 * ROW_LIMIT**2).bit_length(), num_nodes)


@numba.njit(cache=True, nogil=True)
def _nearby(
    graph: tuple[IntArray, IntArray],
    known: tuple[IntArray, IntArray, IntArray],
    bit: int,
    nodes: IntArray,
    partners: tuple[int, int],
    allowed: Flags,
    third_step: bool,
    limit: int,
    met: Met,
    out: IntArray,
) -> None:
    """Fill the rows of ``out``."""
    keys, weight, used = met
    for row in range(len(nodes)):
        node = nodes[row]
        count = _walk(graph, node, third_step, limit, met)
        slots = used[:count]
        kept = np.zeros(count, dtype=np.bool_)
        for place in range(count):
            found = keys[slots[place]]
            free = len(allowed) == 0 or allowed[found]
            if free and partners[0] <= found < partners[1] and found != node:
                kept[place] = not _is_link(known, bit, node, found)
        candidates, shares = keys[slots[kept]], weight[slots[kept]]
        order = np.argsort(candidates)
        candidates, shares = candidates[order], shares[order]
        best = np.argsort(-shares, kind="mergesort")[: out.shape[1]]
        out[row, : len(best)] = candidates[best]
        keys[slots] = NO_NODE
        weight[slots] = 0.0


@numba.njit(cache=True, nogil=True)
def _walk(
    graph: tuple[IntArray, IntArray], node: int, third_step: bool, limit: int, met: Met
) -> int:
    """Weigh all nodes that short walks from a node lead to; returns how many there are."""
    indptr, indices = graph
    keys, weight, used = met
    degree = indptr[node + 1] - indptr[node]
    count = 0
    for step in range(min(degree, limit)):
        middle = indices[indptr[node] + step * degree // min(degree, limit)]
        count = _spread(graph, middle, 1.0, limit, met, count)
    if third_step:
        slots = used[:count].copy()
        shares = weight[slots]
        for place in np.argsort(-shares, kind="mergesort")[:limit]:
            if keys[slots[place]] != node:
                middle = keys[slots[place]]
                count = _spread(graph, middle, shares[place], limit, met, count)
    for step in range(min(degree, limit)):
        near = indices[indptr[node] + step * degree // min(degree, limit)]
        count = _add(near, 1.0, len(indptr) - 1, met, count)
    return count


@numba.njit(cache=True, nogil=True)
def _spread(
    graph: tuple[IntArray, IntArray], node: int, share: float, limit: int, met: Met, count: int
) -> int:
    """Give the neighbours of a node equal parts of its share; returns how many nodes were met."""
    indptr, indices = graph
    degree = indptr[node + 1] - indptr[node]
    for step in range(min(degree, limit)):
        found = indices[indptr[node] + step * degree // min(degree, limit)]
        count = _add(found, share / degree, len(indptr) - 1, met, count)
    return count


@numba.njit(cache=True, nogil=True, inline="always")
def _add(found: int, share: float, num_nodes: int, met: Met, count: int) -> int:
    """Give a node a share; returns how many nodes were met."""
    keys, weight, used = met
    node = np.int64(found)
    slot = node if len(keys) == num_nodes else find_slot(node, keys)
    if keys[slot] == NO_NODE:
        keys[slot] = node
        used[count] = slot
        count += 1
    weight[slot] += share
    return count


@numba.njit(cache=True, nogil=True, inline="always")
def _is_link(known: tuple[IntArray, IntArray, IntArray], bit: int, node: int, other: int) -> bool:
    """Whether a link is known; without codes every edge is one."""
    indptr, indices, codes = known
    entry = entry_index(indptr, indices, node, other)
    if entry >= indptr[node + 1] or indices[entry] != other:
        return False
    return bool(len(codes) == 0 or codes[entry] & bit != 0)
