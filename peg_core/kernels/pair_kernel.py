"""Logits of pairs straight from the rows of their nodes.

Nothing is gathered: a linear head becomes one pass over the two rows of each encoding and
of the embeddings; a head with a hidden layer reads its inputs from a tile of pairs that
stays in the cache. Each logit is a function of its pair alone, bit by bit: neither threads,
nor shards, nor the pairs beside it have a say.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from peg_core.kernels.hidden_layer import LANES, PAIRS, add_hidden_block
from peg_core.kernels.intrinsics import prefetch_row
from peg_core.kernels.node_rows import as_float
from peg_core.kernels.pair_geometry import NUM_GEOMETRIC, position_geometry
from peg_core.kernels.pair_structure import NUM_STRUCTURAL

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]

# Inputs of one tile fit into the second-level cache.
TILE_PAIRS = 16 * PAIRS
# Rows asked for ahead: while one pair is summed, the rows of the next ones travel.
ROWS_AHEAD = 2
# The order of a sum may change, but only once: when the kernel is compiled.
FAST = {"contract", "reassoc"}


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def linear_logits(
    embeddings: Array,
    positions: tuple[FloatArray, ...],
    reads_positions: bool,
    weights: FloatArray,
    offset: np.float32,
    source: Array,
    target: Array,
    out: FloatArray,
) -> None:
    """``out[i] = weights . inputs(i) + offset``.

    Args:
        embeddings: [num_nodes, hidden], float32, or float16 seen as uint16.
        positions: [num_nodes, dimensions] for every encoding.
        reads_positions: Whether the head does.
        weights: [num_inputs]; the structure has none.
        offset: Added to each.
        source, target: [num_pairs].
        out: [num_pairs].
    """
    hidden = embeddings.shape[1]
    extra = np.empty((1, len(weights) - hidden), dtype=np.float32)
    for i in range(len(source)):
        if i + ROWS_AHEAD < len(source):
            prefetch_node(embeddings, positions, reads_positions, source[i + ROWS_AHEAD])
            prefetch_node(embeddings, positions, reads_positions, target[i + ROWS_AHEAD])
        first, second = source[i], target[i]
        total = np.float32(0)
        for k in range(hidden):
            total += weights[k] * as_float(embeddings[first, k]) * as_float(embeddings[second, k])
        total += offset
        if reads_positions:
            all_geometry(positions, first, second, extra, 0, 0)
            for k in range(extra.shape[1] - NUM_STRUCTURAL):
                total += weights[hidden + k] * extra[0, k]
        out[i] = total


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def hidden_logits(
    embeddings: Array,
    positions: tuple[FloatArray, ...],
    structure: FloatArray,
    reads_positions: bool,
    layer: tuple[FloatArray, FloatArray, FloatArray],
    offset: np.float32,
    source: Array,
    target: Array,
    out: FloatArray,
) -> None:
    """``out[i] = outer . relu(inner inputs(i) + bias) + offset``, tile by tile.

    Args:
        structure: [num_pairs, 6]; no columns where the head does not read it.
        layer: Inner weights, bias and outer weights, packed by
            :mod:`peg_core.kernels.hidden_layer`; the rest as in :func:`linear_logits`.
    """
    inner, bias, outer = layer
    num_inputs = inner.shape[1]
    tile = np.zeros((TILE_PAIRS, num_inputs), dtype=np.float32)
    sums = np.empty((TILE_PAIRS, LANES), dtype=np.float32)
    for start in range(0, len(source), TILE_PAIRS):
        count = min(TILE_PAIRS, len(source) - start)
        stop = start + count
        ends = source[start:stop], target[start:stop]
        _fill_rows(embeddings, positions, reads_positions, ends[0], ends[1], tile)
        fill_structure(structure[start:stop], tile)
        sums[:] = 0
        for block in range(inner.shape[0]):
            # rows beyond the last pair hold what an earlier tile left: their sums are not read
            for pair in range(0, count, PAIRS):
                add_hidden_block(tile, pair, num_inputs, inner, bias, outer, block, sums)
        for i in range(count):
            total = offset
            for lane in range(LANES):
                total += sums[i, lane]
            out[start + i] = total


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _fill_rows(
    embeddings: Array,
    positions: tuple[FloatArray, ...],
    reads_positions: bool,
    source: Array,
    target: Array,
    tile: FloatArray,
) -> None:
    """Products of the embeddings and geometry of some pairs."""
    hidden = embeddings.shape[1]
    for i in range(len(source)):
        if i + ROWS_AHEAD < len(source):
            prefetch_node(embeddings, positions, reads_positions, source[i + ROWS_AHEAD])
            prefetch_node(embeddings, positions, reads_positions, target[i + ROWS_AHEAD])
        first, second = source[i], target[i]
        for k in range(hidden):
            tile[i, k] = as_float(embeddings[first, k]) * as_float(embeddings[second, k])
        if reads_positions:
            all_geometry(positions, first, second, tile, i, hidden)


@numba.njit(cache=True, nogil=True)
def stack_logits(structure: FloatArray, weights: FloatArray, out: FloatArray) -> None:
    """``out[i] = weights . (out[i], structure[i])``, of which the first columns are read.

    Args:
        structure: [num_pairs, num_weights - 1] or more.
        weights: That of the logit first.
        out: [num_pairs] logits.
    """
    for i in range(len(out)):
        total = weights[0] * out[i]
        for k in range(1, len(weights)):
            total += weights[k] * structure[i, k - 1]
        out[i] = total


@numba.njit(cache=True, nogil=True)
def fill_structure(structure: FloatArray, tile: FloatArray) -> None:
    """What is known of the neighbourhoods of some pairs, in the last columns."""
    column = tile.shape[1] - structure.shape[1]
    for i in range(len(structure)):
        for k in range(structure.shape[1]):
            tile[i, column + k] = structure[i, k]


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def all_geometry(
    positions: tuple[FloatArray, ...],
    first: int,
    second: int,
    out: FloatArray,
    row: int,
    column: int,
) -> None:
    """The geometry of a pair for every encoding."""
    for encoding in range(len(positions)):
        first_column = column + NUM_GEOMETRIC * encoding
        position_geometry(positions[encoding], first, second, out, row, first_column)


@numba.njit(cache=True, nogil=True, inline="always")
def prefetch_node(
    embeddings: Array, positions: tuple[FloatArray, ...], reads_positions: bool, node: int
) -> None:
    prefetch_row(embeddings, node)
    if reads_positions:
        for encoding in range(len(positions)):
            prefetch_row(positions[encoding], node)
