"""Random graphs of any size: the models."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from peg_core.errors import ConfigError
from peg_core.generators.edge_generator import (
    CHUNK_ROWS,
    EdgeChunk,
    EdgeGenerator,
    IndependentEdges,
    check_seed,
    check_share,
)
from peg_core.kernels.generator_kernels import (
    Int64Array,
    UInt64Array,
    draw_block_edges,
    draw_rmat_edges,
)
from peg_core.random_streams import random_stream

# Below these shares an R-MAT draw would be rejected, and repeated, too often.
MIN_RMAT_SHARE = 0.05


@dataclass(frozen=True)
class StochasticBlockModel(IndependentEdges):
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
    blocks: int = 10
    inside_share: float = 0.8

    def check(self) -> None:
        super().check()
        if not 1 <= self.blocks <= self.nodes // 2:
            raise ConfigError(
                f"{self.blocks:,} blocks were asked for, {self.nodes:,} nodes can form 1 to "
                f"{self.nodes // 2:,} blocks of at least 2 nodes; change `blocks` or `nodes`"
            )
        check_share("inside_share", self.inside_share)
        if self.blocks == 1 and self.inside_share < 1:
            raise ConfigError(
                f"an inside share of {self.inside_share} was asked for with a single block, "
                "which has no outside; set `inside_share` to 1, or raise `blocks`"
            )

    def communities(self, *, seed: int) -> npt.NDArray[np.int32]:
        """The block of every node, [nodes]."""
        self.check()
        check_seed(seed)
        indices = np.arange(self.nodes)
        blocks = np.empty(self.nodes, np.int32)
        blocks[self._id_scramble(seed).apply(indices)] = indices % self.blocks
        return blocks

    def _decay(self) -> float:
        """The node of rank r in its block is drawn in proportion to about r ** -decay."""
        return 0.0

    def _draw(self, key: np.uint64, rounds: UInt64Array, chunk: EdgeChunk) -> None:
        power = 1 - self._decay()
        sizes = self.nodes // self.blocks + np.arange(2)  # of the smaller and the larger blocks
        spans = (sizes + 1.0) ** power - 1
        draw_block_edges(
            key, self.nodes, self.blocks, self.inside_share, spans, 1 / power, rounds, *chunk
        )


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
        exponent: gamma of P(degree) ~ degree ** -gamma; the smaller, the larger the hubs.
        scramble: Shuffle the ids; otherwise node i is in community ``i % blocks`` and
            expected degrees fall with the id.
    """

    name = "dcsbm"
    blocks: int = 100
    exponent: float = 2.5

    def check(self) -> None:
        super().check()
        if not 2.05 <= self.exponent <= 100:
            raise ConfigError(
                f"an exponent of {self.exponent} was asked for, between 2.05 and 100 are "
                "possible; change `exponent`: real networks lie between 2 and 3"
            )

    def _decay(self) -> float:
        return 1 / (self.exponent - 1)


@dataclass(frozen=True)
class RecursiveMatrix(IndependentEdges):
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
    a: float = 0.57
    b: float = 0.19
    c: float = 0.19
    d: float = 0.05

    def check(self) -> None:
        super().check()
        for quarter in "abcd":
            check_share(quarter, getattr(self, quarter))
        total = self.a + self.b + self.c + self.d
        if abs(total - 1) >= 1e-6:
            raise ConfigError(
                f"a, b, c and d sum up to {total:.6g}, needed is 1; change one of them"
            )
        if min(self.a, self.b + self.c) < MIN_RMAT_SHARE:
            raise ConfigError(
                f"a is {self.a} and b + c is {self.b + self.c:.6g}, each must be at least "
                f"{MIN_RMAT_SHARE}; raise them at the cost of d"
            )

    def _draw(self, key: np.uint64, rounds: UInt64Array, chunk: EdgeChunk) -> None:
        bounds = np.cumsum([self.a, self.b, self.c]) * 2.0**32
        draw_rmat_edges(key, self.nodes, bounds.astype(np.uint64), rounds, *chunk)


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
        return math.isqrt(self.nodes) if self.columns is None else self.columns

    @property
    def num_rows(self) -> int:
        return self._edges_along_rows() + self.nodes - self.width

    def check(self) -> None:
        super().check()
        if not 1 <= self.width <= self.nodes:
            raise ConfigError(
                f"{self.width:,} columns were asked for, {self.nodes:,} nodes can form 1 to "
                f"{self.nodes:,}; change `columns` or `nodes`"
            )
        check_share("rewired_share", self.rewired_share)

    def chunk(self, index: int, *, seed: int) -> EdgeChunk:
        first = index * CHUNK_ROWS
        end = min(first + CHUNK_ROWS, self.num_rows)
        along_rows = self._edges_along_rows()
        sideways = np.arange(first, min(end, along_rows))
        # A row of the lattice has one edge less than nodes: skip one node per row passed.
        sideways += sideways // max(self.width - 1, 1)
        downwards = np.arange(max(first, along_rows), end) - along_rows
        source = np.concatenate([sideways, downwards])
        target = np.concatenate([sideways + 1, downwards + self.width])
        if self.rewired_share > 0:
            self._rewire(source, target, index=index, seed=seed)
        return EdgeChunk(source, target)

    def _edges_along_rows(self) -> int:
        return self.nodes - math.ceil(self.nodes / self.width)

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
