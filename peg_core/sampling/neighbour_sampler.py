"""Neighbourhoods of nodes, sampled layer by layer over the memory-mapped rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import GraphStore

Array = npt.NDArray[Any]
IntArray = npt.NDArray[np.int64]

ALL = -1
NOTHING: IntArray = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class SampledNeighbours:
    """A few nodes, their sampled neighbours, theirs, and so on.

    The rows of the nodes that were expanded stand in the order of ``nodes``: the
    first ``counts[0]`` are the seeds, and those up to ``counts[k]`` are all that is
    needed k layers below the last.

    Args:
        nodes: [num_sampled] nodes, seeds first, each once.
        counts: Nodes after 0, 1, ... hops, [num_hops + 1].
        indptr: [counts[-2] + 1] rows of the sampled edges.
        sources: [num_edges] indices in ``nodes``.
        entries: [num_edges] indices in the graph's ``indices``.
        scale: [counts[-2]] degree over neighbours drawn: a sum over the sample times this
            has the full sum as its expectation.
    """

    nodes: IntArray
    counts: tuple[int, ...]
    indptr: IntArray
    sources: npt.NDArray[np.int32]
    entries: IntArray
    scale: npt.NDArray[np.float32]


class NeighbourSampler:
    """Draws neighbours without replacement; one object per thread.

    Args:
        graph: Memory-mapped or not; only rows that are drawn from are read.
        fan_outs: Neighbours per node for each hop from the seeds; -1 for all.
    """

    def __init__(self, graph: GraphStore, fan_outs: Sequence[int]) -> None:
        for fan_out in fan_outs:
            if fan_out != ALL and fan_out < 1:
                raise ValueError(f"a fan-out is {fan_out}, needed is 1 or more, or -1 for all")
        self.graph = graph
        self.fan_outs = np.asarray(fan_outs, dtype=np.int64)
        # where a node stands in the sample, if its mark is that of this sample
        self._row_of = np.empty(graph.num_nodes, dtype=np.int32)
        self._mark = np.zeros(graph.num_nodes, dtype=np.int32)
        self._generation = 0

    def sample(
        self, seeds: IntArray, *, seed: int, excluded: IntArray = NOTHING
    ) -> SampledNeighbours:
        """Sample the neighbourhoods of distinct seeds; the same ``seed``, the same sample.

        Args:
            seeds: [num_seeds] distinct nodes.
            seed: Of the draw, 64 bits.
            excluded: Sorted keys ``first * num_nodes + second`` of edges that must not
                appear, in both directions.
        """
        if self._generation == np.iinfo(np.int32).max:
            self._mark[:] = 0
            self._generation = 0
        self._generation += 1
        nodes, counts, indptr, sources, entries, scale = _sample(
            self.graph.indptr,
            self.graph.indices,
            np.asarray(seeds, dtype=np.int64),
            self.fan_outs,
            np.uint64(seed % 2**64),
            self._row_of,
            self._mark,
            self._generation,
            excluded,
        )
        return SampledNeighbours(nodes, tuple(counts.tolist()), indptr, sources, entries, scale)


@numba.njit(cache=True, nogil=True)
def _next(state: np.uint64) -> tuple[np.uint64, np.uint64]:
    """splitmix64: the next state, and a number made of it."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    z = state
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state, z ^ (z >> np.uint64(31))


@numba.njit(cache=True, nogil=True)
def _grown(values: Array, needed: int) -> Array:
    """The same values with room for more."""
    if needed <= len(values):
        return values
    larger = np.empty(max(needed, 2 * len(values)), dtype=values.dtype)
    larger[: len(values)] = values
    return larger


@numba.njit(cache=True, nogil=True)
def _contains(keys: Array, key: int) -> bool:
    index = np.searchsorted(keys, key)
    return bool(index < len(keys) and keys[index] == key)


@numba.njit(cache=True, nogil=True)
def _sample(
    indptr: Array,
    indices: Array,
    seeds: Array,
    fan_outs: Array,
    state: np.uint64,
    row_of: Array,
    mark: Array,
    generation: int,
    excluded: Array,
) -> tuple[Array, Array, Array, Array, Array, Array]:
    num_nodes = len(indptr) - 1
    nodes = np.empty(4 * len(seeds) + 16, dtype=np.int64)
    sources = np.empty(16, dtype=np.int32)
    entries = np.empty(16, dtype=np.int64)
    counts = np.empty(len(fan_outs) + 1, dtype=np.int64)
    rows = np.zeros(1, dtype=np.int64)
    scale = np.empty(0, dtype=np.float32)
    found = edges = first = 0
    for node in seeds:
        nodes[found] = node
        row_of[node] = found
        mark[node] = generation
        found += 1
    counts[0] = found
    for hop in range(len(fan_outs)):
        fan_out = fan_outs[hop]
        last = found
        room = 0
        for target in range(first, last):
            degree = indptr[nodes[target] + 1] - indptr[nodes[target]]
            room += degree if fan_out == -1 else min(degree, fan_out)
        nodes = _grown(nodes, found + room)
        sources = _grown(sources, edges + room)
        entries = _grown(entries, edges + room)
        rows = _grown(rows, last + 1)
        scale = _grown(scale, last)
        for target in range(first, last):
            node = nodes[target]
            start, degree = indptr[node], indptr[node + 1] - indptr[node]
            taken = degree if fan_out == -1 else min(degree, fan_out)
            begin = edges
            for draw in range(taken):
                entry = start + draw
                if taken < degree:  # Floyd: distinct indices among the first few, then swaps
                    state, number = _next(state)
                    top = degree - taken + draw
                    entry = start + np.int64(number % np.uint64(top + 1))
                    for earlier in range(begin, begin + draw):
                        if entries[earlier] == entry:
                            entry = start + top
                            break
                entries[begin + draw] = entry
            for drawn in range(begin, begin + taken):
                entry = entries[drawn]
                neighbour = np.int64(indices[entry])
                if len(excluded) and _contains(excluded, node * num_nodes + neighbour):
                    continue
                if mark[neighbour] != generation:
                    mark[neighbour] = generation
                    row_of[neighbour] = found
                    nodes[found] = neighbour
                    found += 1
                sources[edges] = row_of[neighbour]
                entries[edges] = entry
                edges += 1
            rows[target + 1] = edges
            scale[target] = degree / taken if taken else 1.0
        first = last
        counts[hop + 1] = found
    return (
        nodes[:found].copy(),
        counts,
        rows[: first + 1].copy(),
        sources[:edges].copy(),
        entries[:edges].copy(),
        scale[:first].copy(),
    )
