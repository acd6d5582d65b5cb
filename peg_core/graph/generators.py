"""Random graphs of any size, drawn chunk by chunk.

A chunk depends on (seed, chunk index) alone and a row within it on its own number, so
the result is the same for one thread and for many. Node ids are 0 .. nodes - 1, no row is
a self-loop, and an edge may be drawn more than once: ingestion merges the repeats.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from peg_core.errors import ConfigError
from peg_core.random_streams import random_stream, stream_seed

Int64Array = npt.NDArray[np.int64]
Float32Array = npt.NDArray[np.float32]

# Part of the result: another chunk size draws other edges from the same seed.
CHUNK_ROWS = 2**20
# The number of node pairs has to stay below 2**63.
MAX_NODES = 2**32
# Below these shares an R-MAT draw would be rejected, and repeated, too often.
MIN_RMAT_SHARE = 0.05
SCRAMBLE_ROUNDS = 4
FIRST_TIME = 1_577_836_800  # 2020-01-01 00:00 UTC, in seconds
TIME_SPAN_SECONDS = 366 * 24 * 3600

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
UNIT = 2.0**-53


class EdgeChunk(NamedTuple):
    """Consecutive rows of an edge list."""

    source: Int64Array  # [rows]
    target: Int64Array  # [rows]


class Scramble(NamedTuple):
    """A keyed permutation of 0 .. size - 1 that needs no memory; no rounds: the identity."""

    size: int
    rounds: npt.NDArray[np.uint64]  # [rounds, 2]: odd factor, addend

    @classmethod
    def of(cls, size: int, *, seed: int, purpose: str) -> Scramble:
        rounds = random_stream(seed=seed, purpose=purpose).integers(
            0, 2**64, size=(SCRAMBLE_ROUNDS, 2), dtype=np.uint64
        )
        rounds[:, 0] |= np.uint64(1)
        return cls(size, rounds)

    @classmethod
    def identity(cls, size: int) -> Scramble:
        return cls(size, np.empty((0, 2), np.uint64))

    def apply(self, values: Int64Array) -> Int64Array:
        """The places of ``values`` in the permutation, [len(values)]."""
        return _permute_all(values, self.size, self.rounds)


@dataclass(frozen=True)
class EdgeGenerator(ABC):
    """A graph that is drawn, not read.

    Args:
        nodes: Number of nodes; not every one of them has to get an edge.
    """

    name: ClassVar[str]
    nodes: int

    @property
    @abstractmethod
    def num_rows(self) -> int:
        """Rows of the edge list, repeats included."""

    @abstractmethod
    def chunk(self, index: int, *, seed: int) -> EdgeChunk:
        """Rows ``index * CHUNK_ROWS`` onwards of the edge list."""

    def check(self) -> None:
        """Raise a ConfigError when the parameters describe no graph."""
        _require(
            2 <= self.nodes <= MAX_NODES,
            f"{self.nodes:,} nodes were asked for, between 2 and {MAX_NODES:,} are possible; "
            "change `nodes`",
        )
        _require(
            self.num_rows >= 1,
            f"{self.num_rows:,} edges were asked for, at least 1 is needed; raise `edges`",
        )

    def chunks(self, *, seed: int) -> Iterator[EdgeChunk]:
        """The edge list in chunks of ``CHUNK_ROWS`` rows, the last one shorter."""
        self.check()
        check_seed(seed)
        for index in range(math.ceil(self.num_rows / CHUNK_ROWS)):
            yield self.chunk(index, seed=seed)

    def _empty_chunk(self, index: int) -> EdgeChunk:
        rows = min(CHUNK_ROWS, self.num_rows - index * CHUNK_ROWS)
        return EdgeChunk(np.empty(rows, np.int64), np.empty(rows, np.int64))

    def _key(self, index: int, seed: int) -> np.uint64:
        return np.uint64(stream_seed(seed=seed, purpose=f"{self.name} edges", shard=index))


@dataclass(frozen=True)
class StochasticBlockModel(EdgeGenerator):
    """Blocks of equal size, with more edges inside a block than between blocks.

    Holland, Laskey, Leinhardt: Stochastic blockmodels: first steps, 1983. A row starts at a
    uniform node and ends at a uniform other node of its block with probability
    ``inside_share``, else at a uniform node of the other blocks.

    Args:
        nodes: Number of nodes.
        edges: Rows to draw; an edge may repeat.
        blocks: Number of blocks; their sizes differ by at most one node.
        inside_share: Share of the rows with both ends in one block.
        scramble: Shuffle the ids; otherwise node i is in block ``i % blocks``.
    """

    name = "sbm"
    edges: int
    blocks: int = 10
    inside_share: float = 0.8
    scramble: bool = True

    @property
    def num_rows(self) -> int:
        return self.edges

    def check(self) -> None:
        super().check()
        _require(
            1 <= self.blocks <= self.nodes // 2,
            f"{self.blocks:,} blocks were asked for, {self.nodes:,} nodes can form 1 to "
            f"{self.nodes // 2:,} blocks of at least 2 nodes; change `blocks` or `nodes`",
        )
        _check_share("inside_share", self.inside_share)
        _require(
            self.blocks > 1 or self.inside_share == 1,
            f"an inside share of {self.inside_share} was asked for with a single block, which "
            "has no outside; set `inside_share` to 1, or raise `blocks`",
        )

    def chunk(self, index: int, *, seed: int) -> EdgeChunk:
        chunk = self._empty_chunk(index)
        decay = self._decay()
        sizes = self.nodes // self.blocks + np.arange(2)
        _draw_block_edges(
            self._key(index, seed),
            self.nodes,
            self.blocks,
            self.inside_share,
            (sizes + 1.0) ** (1 - decay) - 1,
            1 / (1 - decay),
            self._scramble(seed).rounds,
            *chunk,
        )
        return chunk

    def communities(self, *, seed: int) -> npt.NDArray[np.int32]:
        """The block of every node, [nodes]."""
        self.check()
        check_seed(seed)
        places = np.arange(self.nodes)
        blocks = np.empty(self.nodes, np.int32)
        blocks[self._scramble(seed).apply(places)] = places % self.blocks
        return blocks

    def _decay(self) -> float:
        """The node of rank r in its block is drawn in proportion to about r ** -decay."""
        return 0.0

    def _scramble(self, seed: int) -> Scramble:
        return _id_scramble(self.nodes, seed=seed, wanted=self.scramble)


@dataclass(frozen=True)
class DegreeCorrectedBlockModel(StochasticBlockModel):
    """Many communities, each with few hubs and many nodes of small degree.

    Karrer, Newman: Stochastic blockmodels and community structure in networks, 2011
    (https://arxiv.org/abs/1008.3926). As :class:`StochasticBlockModel`, but an end is drawn
    in proportion to its expected degree, which follows a power law within each block.
    Repeats are frequent among hubs.

    Args:
        nodes: Number of nodes.
        edges: Rows to draw; an edge may repeat.
        blocks: Number of communities; their sizes differ by at most one node.
        inside_share: Share of the rows with both ends in one community.
        scramble: Shuffle the ids; otherwise node i is in community ``i % blocks`` and
            expected degrees fall with the id.
        exponent: gamma of P(degree) ~ degree ** -gamma; the smaller, the larger the hubs.
    """

    name = "dcsbm"
    blocks: int = 100
    exponent: float = 2.5

    def check(self) -> None:
        super().check()
        _require(
            2.05 <= self.exponent <= 100,
            f"an exponent of {self.exponent} was asked for, between 2.05 and 100 are possible; "
            "change `exponent`: real networks lie between 2 and 3",
        )

    def _decay(self) -> float:
        return 1 / (self.exponent - 1)


@dataclass(frozen=True)
class RecursiveMatrix(EdgeGenerator):
    """R-MAT, the graphs of the Graph500 benchmark: skewed degrees, no communities.

    Chakrabarti, Zhan, Faloutsos: R-MAT: a recursive model for graph mining, 2004. The
    adjacency matrix of the next power of two is quartered bit by bit; draws outside of the
    first ``nodes`` rows and columns, and self-loops, are repeated.

    Args:
        nodes: Number of nodes, not necessarily a power of two.
        edges: Rows to draw; an edge may repeat.
        a: Probability of the quarter (low source, low target).
        b: Probability of (low source, high target).
        c: Probability of (high source, low target).
        d: Probability of (high source, high target).
        scramble: Shuffle the ids; otherwise degrees fall with the id's number of one bits.
    """

    name = "rmat"
    edges: int
    a: float = 0.57
    b: float = 0.19
    c: float = 0.19
    d: float = 0.05
    scramble: bool = True

    @property
    def num_rows(self) -> int:
        return self.edges

    def check(self) -> None:
        super().check()
        for quarter in "abcd":
            _check_share(quarter, getattr(self, quarter))
        total = self.a + self.b + self.c + self.d
        _require(
            abs(total - 1) < 1e-6,
            f"a, b, c and d sum up to {total:.6g}, needed is 1; change one of them",
        )
        _require(
            min(self.a, self.b + self.c) >= MIN_RMAT_SHARE,
            f"a is {self.a} and b + c is {self.b + self.c:.6g}, each must be at least "
            f"{MIN_RMAT_SHARE}; raise them at the cost of d",
        )

    def chunk(self, index: int, *, seed: int) -> EdgeChunk:
        chunk = self._empty_chunk(index)
        bounds = np.cumsum([self.a, self.b, self.c]) * 2.0**32
        rounds = _id_scramble(self.nodes, seed=seed, wanted=self.scramble).rounds
        key = self._key(index, seed)
        _draw_rmat_edges(key, self.nodes, bounds.astype(np.uint64), rounds, *chunk)
        return chunk


@dataclass(frozen=True)
class Grid(EdgeGenerator):
    """A two-dimensional lattice: node i stands in row ``i // columns``.

    Rows come in order: all edges along the rows of the lattice, then all between them.
    Nothing is random and nothing repeats unless ``rewired_share`` is given.

    Args:
        nodes: Number of nodes; the last row of the lattice may be incomplete.
        columns: Nodes in a row; none: as close to a square as possible.
        rewired_share: Share of the edges whose target becomes a uniform other node, as in
            Watts, Strogatz: Collective dynamics of 'small-world' networks, 1998.
    """

    name = "grid"
    columns: int | None = None
    rewired_share: float = 0.0

    @property
    def width(self) -> int:
        """Nodes in a full row of the lattice."""
        return math.isqrt(max(self.nodes, 0)) if self.columns is None else self.columns

    @property
    def num_rows(self) -> int:
        return self._edges_along_rows() + max(self.nodes - self.width, 0)

    def check(self) -> None:
        super().check()
        _require(
            1 <= self.width <= self.nodes,
            f"{self.width:,} columns were asked for, {self.nodes:,} nodes can form 1 to "
            f"{self.nodes:,}; change `columns` or `nodes`",
        )
        _check_share("rewired_share", self.rewired_share)

    def chunk(self, index: int, *, seed: int) -> EdgeChunk:
        first = index * CHUNK_ROWS
        row = np.arange(first, min(first + CHUNK_ROWS, self.num_rows))
        along_rows = self._edges_along_rows()
        inside = row[: np.searchsorted(row, along_rows)]
        # A row of the lattice has one edge less than nodes: skip one node per row passed.
        sideways = inside + inside // max(self.width - 1, 1)
        downwards = row[len(inside) :] - along_rows
        source = np.concatenate([sideways, downwards])
        target = np.concatenate([sideways + 1, downwards + self.width])
        if self.rewired_share > 0:
            self._rewire(source, target, index=index, seed=seed)
        return EdgeChunk(source, target)

    def _edges_along_rows(self) -> int:
        return self.nodes - math.ceil(self.nodes / max(self.width, 1))

    def _rewire(self, source: Int64Array, target: Int64Array, *, index: int, seed: int) -> None:
        stream = random_stream(seed=seed, purpose="grid rewiring", shard=index)
        rewired = np.flatnonzero(stream.random(len(source)) < self.rewired_share)
        other = stream.integers(0, self.nodes - 1, len(rewired))
        target[rewired] = other + (other >= source[rewired])  # every node but the source


GENERATORS: dict[str, type[EdgeGenerator]] = {
    "sbm": StochasticBlockModel,
    "dcsbm": DegreeCorrectedBlockModel,
    "rmat": RecursiveMatrix,
    "grid": Grid,
}


def community_features(
    communities: npt.NDArray[np.integer[Any]],
    *,
    dimensions: int,
    seed: int,
    noise: float = 1.0,
    shard: int = 0,
) -> Float32Array:
    """Node features that tell the community through noise.

    Each community has a centre drawn from a standard normal distribution; a node has the
    centre of its community plus normal noise.

    Args:
        communities: Community of each node, [num_nodes].
        dimensions: Features of a node.
        seed: Decides centres and noise.
        noise: Standard deviation of the noise; the centres have 1.
        shard: Which part of a larger node table this is: centres stay, the noise differs.

    Returns:
        Features, [num_nodes, dimensions].
    """
    check_seed(seed)
    _require(
        dimensions >= 1,
        f"{dimensions:,} features were asked for, at least 1 is needed; raise their number",
    )
    _require(
        0 <= noise < math.inf,
        f"a feature noise of {noise} was asked for, needed is 0 or more; raise it",
    )
    # Drawn row by row, so the centre of a community does not depend on how many follow it.
    count = int(communities.max(initial=-1)) + 1
    centres = random_stream(seed=seed, purpose="feature centres").standard_normal(
        (count, dimensions), dtype=np.float32
    )
    features = random_stream(seed=seed, purpose="feature noise", shard=shard).standard_normal(
        (len(communities), dimensions), dtype=np.float32
    )
    features *= np.float32(noise)
    features += centres[communities]
    return features


def sample_candidates(*, nodes: int, rows: int, seed: int, first_row: int = 0) -> EdgeChunk:
    """Random pairs of two different nodes, no pair twice, in either order.

    Calls with consecutive ``first_row`` continue one list: its pairs are distinct across
    the calls too. A pair may be an edge of the graph.

    Args:
        nodes: Number of nodes.
        rows: Pairs wanted.
        seed: Decides the list.
        first_row: Pairs of the list to skip.

    Returns:
        Both ends of each pair, [rows] each.
    """
    check_seed(seed)
    total = nodes * (nodes - 1) // 2
    _require(
        2 <= nodes <= MAX_NODES and 0 <= rows <= total - first_row,
        f"{first_row + rows:,} candidates were asked for, {nodes:,} nodes form only {total:,} "
        "pairs; lower the number of candidates, or raise `nodes`",
    )
    scramble = Scramble.of(total, seed=seed, purpose="candidates")
    pair = scramble.apply(np.arange(first_row, first_row + rows))
    # Number the pairs by distance around a circle: {node, node + distance mod nodes} with
    # distance 1 .. nodes / 2 meets every pair once, without rounding a square root.
    distance, node = np.divmod(pair, nodes)
    return EdgeChunk(node, (node + distance + 1) % nodes)


def edge_weights(rows: int, *, seed: int, chunk: int) -> Float32Array:
    """Weights for one chunk of edges, uniform above 0 up to 1, [rows]."""
    stream = random_stream(seed=seed, purpose="edge weights", shard=chunk)
    return np.float32(1) - stream.random(rows, dtype=np.float32)


def edge_times(rows: int, *, seed: int, chunk: int) -> Int64Array:
    """Times for one chunk of edges, uniform seconds of the year 2020 since 1970, [rows]."""
    stream = random_stream(seed=seed, purpose="edge times", shard=chunk)
    return stream.integers(FIRST_TIME, FIRST_TIME + TIME_SPAN_SECONDS, rows)


def check_seed(seed: int) -> None:
    """Raise a ConfigError when no stream can be derived from ``seed``."""
    _require(seed >= 0, f"the seed is {seed}, needed is 0 or more; change `seed`")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ConfigError(message)


def _check_share(name: str, share: float) -> None:
    _require(
        0 <= share <= 1,
        f"`{name}` is {share}, needed is a share between 0 and 1; change `{name}`",
    )


def _id_scramble(nodes: int, *, seed: int, wanted: bool) -> Scramble:
    if not wanted:
        return Scramble.identity(nodes)
    return Scramble.of(nodes, seed=seed, purpose="node ids")


# Kernels: row r of a chunk draws its n-th number as a hash of (key, r, n), splitmix64.
# Everything hashed stays uint64: numba turns a mix of int64 and uint64 into a float.


@numba.njit(cache=True)
def _mix(value: np.uint64) -> np.uint64:
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@numba.njit(cache=True)
def _uniform(state: np.uint64) -> float:
    """A float64 in [0, 1)."""
    return np.int64(_mix(state) >> np.uint64(11)) * UNIT


@numba.njit(cache=True)
def _bit_width(size: int) -> np.uint64:
    width = np.uint64(1)
    while (np.uint64(1) << width) < np.uint64(size):
        width += np.uint64(1)
    return width


@numba.njit(cache=True)
def _permute(value: int, size: int, width: np.uint64, rounds: npt.NDArray[np.uint64]) -> np.int64:
    """Every step is one-to-one on ``width`` bits; walk on until back below ``size``."""
    mask = (np.uint64(1) << width) - np.uint64(1)
    shift = (width + np.uint64(1)) >> np.uint64(1)
    place = np.uint64(value)
    while True:
        for turn in range(len(rounds)):
            place = (place * rounds[turn, 0] + rounds[turn, 1]) & mask
            place ^= place >> shift
        if place < np.uint64(size):
            return np.int64(place)


@numba.njit(cache=True, parallel=True, nogil=True)
def _permute_all(values: Int64Array, size: int, rounds: npt.NDArray[np.uint64]) -> Int64Array:
    places = np.empty(len(values), np.int64)
    width = _bit_width(size)
    for i in numba.prange(len(values)):
        places[i] = _permute(values[i], size, width, rounds)
    return places


@numba.njit(cache=True)
def _block_member(
    block: int, uniform: float, nodes: int, blocks: int, spans: npt.NDArray[Any], power: float
) -> np.int64:
    """The node of ``block`` at ``uniform`` of its cumulated expected degrees."""
    larger = np.int64(block < nodes % blocks)
    size = nodes // blocks + larger
    reach = 1.0 + uniform * spans[larger]
    if power != 1.0:
        reach = reach**power
    return np.int64(block + blocks * (min(np.int64(reach), size) - 1))


@numba.njit(cache=True, parallel=True, nogil=True)
def _draw_block_edges(
    key: np.uint64,
    nodes: int,
    blocks: int,
    inside_share: float,
    spans: npt.NDArray[np.float64],
    power: float,
    rounds: npt.NDArray[np.uint64],
    source: Int64Array,
    target: Int64Array,
) -> None:
    width = _bit_width(nodes)
    for row in numba.prange(len(source)):
        state = _mix(key + np.uint64(row) * GOLDEN)
        block = np.int64(_uniform(state) * nodes) % blocks
        inside = _uniform(state + GOLDEN) < inside_share
        first = _block_member(
            block, _uniform(state + np.uint64(2) * GOLDEN), nodes, blocks, spans, power
        )
        state += np.uint64(3) * GOLDEN
        other = block
        while not inside and other == block:
            other = np.int64(_uniform(state) * nodes) % blocks
            state += GOLDEN
        second = first
        while second == first:
            second = _block_member(other, _uniform(state), nodes, blocks, spans, power)
            state += GOLDEN
        source[row] = _permute(first, nodes, width, rounds)
        target[row] = _permute(second, nodes, width, rounds)


@numba.njit(cache=True, parallel=True, nogil=True)
def _draw_rmat_edges(
    key: np.uint64,
    nodes: int,
    bounds: npt.NDArray[np.uint64],
    rounds: npt.NDArray[np.uint64],
    source: Int64Array,
    target: Int64Array,
) -> None:
    width = _bit_width(nodes)
    low_half = np.uint64(0xFFFFFFFF)
    for row in numba.prange(len(source)):
        state = _mix(key + np.uint64(row) * GOLDEN)
        first, second = np.int64(0), np.int64(0)
        while first == second or first >= nodes or second >= nodes:
            first, second = np.int64(0), np.int64(0)
            for level in range(width):
                if level % 2 == 0:  # one hash serves two levels
                    bits = _mix(state)
                    state += GOLDEN
                part = bits & low_half
                bits >>= np.uint64(32)
                low_source = part < bounds[1]
                low_target = part < bounds[0] or (not low_source and part < bounds[2])
                first = 2 * first + np.int64(not low_source)
                second = 2 * second + np.int64(not low_target)
        source[row] = _permute(first, nodes, width, rounds)
        target[row] = _permute(second, nodes, width, rounds)
