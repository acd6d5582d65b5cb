"""Logits of directed pairs straight from the rows of their nodes.

As :mod:`peg_core.kernels.pair_kernel`, with what tells (u, v) from (v, u): the first half of
the embedding of u times the second half of that of v, and the directed structure.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from peg_core.kernels.hidden_layer import LANES, PAIRS, add_hidden_block
from peg_core.kernels.node_rows import as_float
from peg_core.kernels.pair_kernel import (
    FAST,
    ROWS_AHEAD,
    TILE_PAIRS,
    all_geometry,
    fill_structure,
    prefetch_node,
)

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def directed_logits(
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
        structure: [num_pairs, 15]; no columns where the head does not read it. The rest as in
            :func:`peg_core.kernels.pair_kernel.hidden_logits`.
    """
    inner, bias, outer = layer
    num_inputs = inner.shape[1]
    tile = np.zeros((TILE_PAIRS, num_inputs), dtype=np.float32)
    sums = np.empty((TILE_PAIRS, LANES), dtype=np.float32)
    for start in range(0, len(source), TILE_PAIRS):
        count = min(TILE_PAIRS, len(source) - start)
        ends = source[start : start + count], target[start : start + count]
        _fill_rows(embeddings, positions, reads_positions, ends[0], ends[1], tile)
        fill_structure(structure[start : start + count], tile)
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
    """Products of the embeddings, of their halves crosswise, and geometry of some pairs."""
    hidden = embeddings.shape[1]
    half = hidden // 2
    for i in range(len(source)):
        if i + ROWS_AHEAD < len(source):
            prefetch_node(embeddings, positions, reads_positions, source[i + ROWS_AHEAD])
            prefetch_node(embeddings, positions, reads_positions, target[i + ROWS_AHEAD])
        first, second = source[i], target[i]
        for k in range(hidden):
            tile[i, k] = as_float(embeddings[first, k]) * as_float(embeddings[second, k])
        for k in range(half):
            crossed = as_float(embeddings[first, k]) * as_float(embeddings[second, half + k])
            tile[i, hidden + k] = crossed
        if reads_positions:
            all_geometry(positions, first, second, tile, i, hidden + half)
