"""Random walks over the compressed rows: first order, and node2vec's second order.

The n-th number of a walk is a hash of (key, start, n), splitmix64: a walk depends on
its seed, its pass and its start alone, never on the thread or task that walks it.
Everything hashed stays uint64: numba turns a mix of int64 and uint64 into a float.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import FloatArray, GraphStore, IntArray
from peg_core.kernels.thread_spans import map_spans
from peg_core.random_streams import stream_seed

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
NO_NODE = -1
# Starts that a thread takes at least: fewer are not worth waking it.
SMALLEST_SPAN = 1_024
# Walks taken side by side: while one waits for its row, the others go on.
GROUP = 16


class WalkGraph(NamedTuple):
    """What the kernels read of a graph.

    Args:
        indptr: [num_nodes + 1].
        indices: [entries].
        cumulative: Of the weights within a row, up to 1, [entries]; empty when all are equal.
    """

    indptr: IntArray
    indices: IntArray
    cumulative: npt.NDArray[np.float32]

    @classmethod
    def of(cls, graph: GraphStore) -> WalkGraph:
        if graph.weights is None:
            return cls(graph.indptr, graph.indices, np.empty(0, np.float32))
        return cls(graph.indptr, graph.indices, cumulative_weights(graph.indptr, graph.weights))

    @property
    def num_nodes(self) -> int:
        return len(self.indptr) - 1


@dataclass(frozen=True)
class WalkRule:
    """How a walk goes on.

    Args:
        length: Nodes of a walk, its start among them.
        back: Weight of the step back to the node before, 1/p of node2vec.
        away: Weight of a step to a node that is no neighbour of the node before, 1/q.
    """

    length: int = 80
    back: float = 1.0
    away: float = 1.0

    @property
    def kernel_arguments(self) -> tuple[int, float, float]:
        return self.length, self.back, self.away


def walk_key(*, seed: int, number: int) -> np.uint64:
    """The key of one pass of walks."""
    return np.uint64(stream_seed(seed=seed, purpose="random walks", shard=number))


def generate_walks(
    graph: WalkGraph, starts: IntArray, rule: WalkRule, *, seed: int, number: int = 0
) -> IntArray:
    """One walk from every start.

    Args:
        graph: The graph.
        starts: Nodes to start from, [num_starts].
        rule: How a walk goes on.
        seed: Of the run.
        number: Of the pass; another number, other walks.

    Returns:
        Nodes, [num_starts, length]; the walk of an isolated node is followed by ``NO_NODE``.
    """
    walks = np.empty((len(starts), rule.length), dtype=graph.indices.dtype)
    key = walk_key(seed=seed, number=number)
    own = np.ascontiguousarray(starts, dtype=np.int64)
    arguments = (own, *rule.kernel_arguments, key, walks)
    size = max(SMALLEST_SPAN, len(starts) // (4 * numba.get_num_threads()))
    spans = [slice(a, min(a + size, len(starts))) for a in range(0, len(starts), size)]
    plain = len(graph.cumulative) == 0 and rule.back == rule.away == 1
    kernel = _walk_plainly if plain else _walk_all
    map_spans(lambda span: kernel(*graph, span.start, span.stop, *arguments), spans)
    return walks


@numba.njit(cache=True)
def cumulative_weights(indptr: IntArray, weights: FloatArray) -> npt.NDArray[np.float32]:
    """Weights of every row summed up and divided by their sum, [entries]."""
    cumulative = np.empty(len(weights), dtype=np.float32)
    for row in range(len(indptr) - 1):
        total = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            total += weights[entry]
        running = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            running += weights[entry]
            cumulative[entry] = running / total
    return cumulative


@numba.njit(cache=True, nogil=True)
def mix(value: np.uint64) -> np.uint64:
    """splitmix64's hash of 64 bits."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@numba.njit(cache=True, nogil=True)
def start_state(key: np.uint64, start: int) -> np.uint64:
    """Where the numbers of one walk begin."""
    return mix(key ^ mix(np.uint64(start) * GOLDEN))


@numba.njit(cache=True, nogil=True)
def below(bits: np.uint64, bound: int) -> np.int64:
    """A number from 0 to ``bound`` - 1 out of 64 random bits; ``bound`` is below 2**32."""
    return np.int64(((bits >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@numba.njit(cache=True, nogil=True)
def uniform(bits: np.uint64) -> float:
    """A float64 in [0, 1) out of 64 random bits."""
    return np.int64(bits >> np.uint64(11)) * 2.0**-53


@numba.njit(cache=True, nogil=True)
def first_order_step(
    indptr: IntArray,
    indices: IntArray,
    cumulative: npt.NDArray[np.float32],
    node: int,
    bits: np.uint64,
) -> np.int64:
    """A neighbour of a node that has some, by weight."""
    low = indptr[node]
    high = indptr[node + 1]
    if len(cumulative) == 0:
        return np.int64(indices[low + below(bits, high - low)])
    goal = np.float32(uniform(bits))
    last = high - 1
    while low < last:  # the first entry above the goal; the last where rounding left none
        middle = (low + last) // 2
        if cumulative[middle] > goal:
            last = middle
        else:
            low = middle + 1
    return np.int64(indices[low])


@numba.njit(cache=True, nogil=True)
def _is_neighbour(indptr: IntArray, indices: IntArray, node: int, other: int) -> bool:
    low, high = indptr[node], indptr[node + 1]
    end = high
    while low < high:
        middle = (low + high) // 2
        if indices[middle] < other:
            low = middle + 1
        else:
            high = middle
    return bool(low < end and indices[low] == other)


@numba.njit(cache=True, nogil=True)
def _second_order_step(
    indptr: IntArray,
    indices: IntArray,
    cumulative: npt.NDArray[np.float32],
    before: int,
    node: int,
    state: np.uint64,
    back: float,
    away: float,
) -> tuple[np.int64, np.uint64]:
    """Propose first-order steps until one is accepted: no tables per pair of nodes."""
    highest = max(back, away, 1.0)
    surely = min(away, 1.0)
    while True:
        state += GOLDEN
        proposed = first_order_step(indptr, indices, cumulative, node, mix(state))
        state += GOLDEN
        goal = uniform(mix(state)) * highest
        if proposed == before:
            if goal < back:
                return proposed, state
            continue
        limit = surely  # below it nobody needs to know whether this is a neighbour of the last
        if goal >= surely:
            limit = 1.0 if _is_neighbour(indptr, indices, before, proposed) else away
        if goal < limit:
            return proposed, state


@numba.njit(cache=True, nogil=True)
def walk(
    indptr: IntArray,
    indices: IntArray,
    cumulative: npt.NDArray[np.float32],
    start: int,
    length: int,
    back: float,
    away: float,
    state: np.uint64,
    path: IntArray,
) -> tuple[int, np.uint64]:
    """Write a walk into ``path``, [length]; returns its nodes and the state after it."""
    path[0] = start
    node = np.int64(start)
    if indptr[node] == indptr[node + 1]:
        return 1, state
    second_order = back != 1.0 or away != 1.0
    for step in range(1, length):
        if second_order and step > 1:
            before = np.int64(path[step - 2])
            node, state = _second_order_step(
                indptr, indices, cumulative, before, node, state, back, away
            )
        else:
            state += GOLDEN
            node = first_order_step(indptr, indices, cumulative, node, mix(state))
        path[step] = node
    return length, state


@numba.njit(cache=True, nogil=True)
def _walk_all(
    indptr: IntArray,
    indices: IntArray,
    cumulative: npt.NDArray[np.float32],
    first: int,
    stop: int,
    starts: IntArray,
    length: int,
    back: float,
    away: float,
    key: np.uint64,
    walks: Any,
) -> None:
    for i in range(first, stop):
        path = walks[i]
        state = start_state(key, starts[i])
        reached, _ = walk(indptr, indices, cumulative, starts[i], length, back, away, state, path)
        path[reached:] = NO_NODE


@numba.njit(cache=True, nogil=True)
def _walk_plainly(
    indptr: IntArray,
    indices: IntArray,
    cumulative: npt.NDArray[np.float32],  # noqa: ARG001
    first: int,
    stop: int,
    starts: IntArray,
    length: int,
    back: float,  # noqa: ARG001
    away: float,  # noqa: ARG001
    key: np.uint64,
    walks: Any,
) -> None:
    """The same walks as :func:`_walk_all` where all neighbours are alike, a group at a time."""
    nodes = np.empty(GROUP, dtype=np.int64)
    states = np.empty(GROUP, dtype=np.uint64)
    for base in range(first, stop, GROUP):
        count = min(GROUP, stop - base)
        for k in range(count):
            nodes[k] = starts[base + k]
            states[k] = start_state(key, nodes[k])
            walks[base + k, 0] = nodes[k]
        for step in range(1, length):
            for k in range(count):
                low, high = indptr[nodes[k]], indptr[nodes[k] + 1]
                if low == high:  # an isolated start: no walk ever comes to such a node
                    walks[base + k, step] = NO_NODE
                    continue
                states[k] += GOLDEN
                node = indices[low + below(mix(states[k]), high - low)]
                walks[base + k, step] = node
                nodes[k] = node
