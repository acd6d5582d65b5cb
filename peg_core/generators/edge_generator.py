"""What all random graphs have in common: edges drawn chunk by chunk.

A chunk depends on (seed, chunk index) alone and a row within it on its own number, so
the result is the same for one thread and for many. Node ids are 0 .. nodes - 1, no row is
a self-loop, and an edge may be drawn more than once: ingestion merges the repeats.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from peg_core.errors import ConfigError
from peg_core.kernels.generator_kernels import Int64Array, UInt64Array
from peg_core.random_streams import stream_seed
from peg_core.scramble import Scramble

# Part of the result: another chunk size draws other edges from the same seed.
CHUNK_ROWS = 2**20
# The number of node pairs has to stay below 2**63.
MAX_NODES = 2**32


class EdgeChunk(NamedTuple):
    """Consecutive rows of an edge list."""

    source: Int64Array  # [rows]
    target: Int64Array  # [rows]


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
        check_nodes(self.nodes)

    def chunks(self, *, seed: int) -> Iterator[EdgeChunk]:
        """The edge list in chunks of ``CHUNK_ROWS`` rows, the last one shorter."""
        self.check()
        check_seed(seed)
        for index in range(math.ceil(self.num_rows / CHUNK_ROWS)):
            yield self.chunk(index, seed=seed)


@dataclass(frozen=True)
class IndependentEdges(EdgeGenerator):
    """A graph whose rows are drawn independently of each other.

    Args:
        nodes: Number of nodes.
        edges: Rows to draw; an edge may repeat.
        scramble: Shuffle the ids, which otherwise tell what a node is like.
    """

    edges: int
    scramble: bool = field(default=True, kw_only=True)

    @property
    def num_rows(self) -> int:
        return self.edges

    def check(self) -> None:
        super().check()
        if self.edges < 1:
            raise ConfigError(
                f"{self.edges:,} edges were asked for, at least 1 is needed; raise `edges`"
            )

    def chunk(self, index: int, *, seed: int) -> EdgeChunk:
        rows = min(CHUNK_ROWS, self.edges - index * CHUNK_ROWS)
        chunk = EdgeChunk(np.empty(rows, np.int64), np.empty(rows, np.int64))
        key = stream_seed(seed=seed, purpose=f"{self.name} edges", shard=index)
        self._draw(np.uint64(key), self._id_scramble(seed).rounds, chunk)
        return chunk

    @abstractmethod
    def _draw(self, key: np.uint64, rounds: UInt64Array, chunk: EdgeChunk) -> None:
        """Fill ``chunk``; ``rounds`` shuffle the ids."""

    def _id_scramble(self, seed: int) -> Scramble:
        if not self.scramble:
            return Scramble.identity(self.nodes)
        return Scramble.of(self.nodes, seed=seed, purpose="node ids")


def check_nodes(nodes: int) -> None:
    """Raise a ConfigError when there are too few or too many nodes for a graph."""
    if not 2 <= nodes <= MAX_NODES:
        raise ConfigError(
            f"{nodes:,} nodes were asked for, between 2 and {MAX_NODES:,} are possible; "
            "change `nodes`"
        )


def check_seed(seed: int) -> None:
    """Raise a ConfigError when no stream can be derived from ``seed``."""
    if seed < 0:
        raise ConfigError(f"the seed is {seed}, needed is 0 or more; change `seed`")


def check_share(name: str, share: float) -> None:
    """Raise a ConfigError when the parameter ``name`` is no share."""
    if not 0 <= share <= 1:
        raise ConfigError(
            f"`{name}` is {share}, needed is a share between 0 and 1; change `{name}`"
        )
