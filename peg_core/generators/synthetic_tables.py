"""What a random graph comes with: node features, edge weights and times, pairs to score."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.errors import ConfigError
from peg_core.generators.edge_generator import EdgeChunk, check_nodes, check_seed
from peg_core.kernels.generator_kernels import Int64Array
from peg_core.random_streams import random_stream
from peg_core.scramble import Scramble

Float32Array = npt.NDArray[np.float32]

FIRST_TIME = 1_577_836_800  # 2020-01-01 00:00 UTC, in seconds
TIME_SPAN_SECONDS = 366 * 24 * 3600


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
    check_features(dimensions=dimensions, noise=noise)
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


def check_features(*, dimensions: int, noise: float) -> None:
    """Raise a ConfigError when no such features can be drawn."""
    if dimensions < 1:
        raise ConfigError(
            f"{dimensions:,} features were asked for, at least 1 is needed; raise their number"
        )
    if not 0 <= noise < math.inf:
        raise ConfigError(
            f"a feature noise of {noise} was asked for, needed is a finite number of 0 or more; "
            "change the noise"
        )


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
    check_candidates(nodes=nodes, rows=first_row + rows)
    scramble = Scramble.of(_count_pairs(nodes), seed=seed, purpose="candidates")
    pair = scramble.apply(np.arange(first_row, first_row + rows))
    # Number the pairs by distance around a circle: {node, node + distance mod nodes} with
    # distance 1 .. nodes / 2 meets every pair once, without rounding a square root.
    distance, node = np.divmod(pair, nodes)
    return EdgeChunk(node, (node + distance + 1) % nodes)


def check_candidates(*, nodes: int, rows: int) -> None:
    """Raise a ConfigError when there are not ``rows`` different pairs of nodes."""
    check_nodes(nodes)
    if rows < 1:
        raise ConfigError(
            f"{rows:,} candidates were asked for, at least 1 is needed; raise their number"
        )
    if rows > _count_pairs(nodes):
        raise ConfigError(
            f"{rows:,} candidates were asked for, {nodes:,} nodes form only "
            f"{_count_pairs(nodes):,} pairs; lower the number of candidates, or raise `nodes`"
        )


def edge_weights(rows: int, *, seed: int, chunk: int) -> Float32Array:
    """Weights for one chunk of edges, uniform above 0 up to 1, [rows]."""
    stream = random_stream(seed=seed, purpose="edge weights", shard=chunk)
    return np.float32(1) - stream.random(rows, dtype=np.float32)


def edge_times(rows: int, *, seed: int, chunk: int) -> Int64Array:
    """Times for one chunk of edges, uniform seconds of the year 2020 since 1970, [rows]."""
    stream = random_stream(seed=seed, purpose="edge times", shard=chunk)
    return stream.integers(FIRST_TIME, FIRST_TIME + TIME_SPAN_SECONDS, rows)


def _count_pairs(nodes: int) -> int:
    return nodes * (nodes - 1) // 2
