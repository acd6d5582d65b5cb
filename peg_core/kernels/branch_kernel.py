"""Logits of pairs by branches that are scaled each to one spread: two sums a branch.

A branch is ``outer . relu(y / s)`` with ``y = inner inputs + bias`` of mean 0 and
``s = sqrt(mean(y^2) + epsilon)``. A scale above 0 can be taken out of the rectifier, so that
``outer . relu(y)`` and the squares are summed in one pass, as in :mod:`pair_kernel`.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from peg_core.kernels.hidden_layer import LANES, PAIRS, add_squared_block
from peg_core.kernels.node_rows import as_float
from peg_core.kernels.pair_geometry import NUM_GEOMETRIC
from peg_core.kernels.pair_kernel import (
    FAST,
    ROWS_AHEAD,
    TILE_PAIRS,
    all_geometry,
    fill_structure,
    prefetch_node,
)
from peg_core.kernels.pair_structure import NUM_STRUCTURAL

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float32]
Branch = tuple[FloatArray, FloatArray, FloatArray]


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def branch_logits(
    embeddings: Array,
    positions: tuple[FloatArray, ...],
    structure: FloatArray,
    branches: tuple[Branch, ...],
    width: int,
    epsilon: np.float32,
    offset: np.float32,
    source: Array,
    target: Array,
    out: FloatArray,
) -> None:
    """``out[i] = offset + sum over branches``, tile by tile.

    Args:
        embeddings: [num_nodes, hidden], float32, or float16 seen as uint16.
        positions: [num_nodes, dimensions] for every encoding.
        structure: [num_pairs, 6].
        branches: Inner weights, bias and outer weights of the product, the structure and, where
            there are three, the geometry; packed by :mod:`peg_core.kernels.hidden_layer`.
        width: Columns of a branch.
        epsilon: Added to the mean square.
        offset: Added to each.
        source, target: [num_pairs].
        out: [num_pairs].
    """
    reads_positions = len(branches) > 2
    tiles = (
        np.zeros((TILE_PAIRS, embeddings.shape[1]), dtype=np.float32),
        np.zeros((TILE_PAIRS, NUM_STRUCTURAL), dtype=np.float32),
        np.zeros((TILE_PAIRS, NUM_GEOMETRIC * len(positions)), dtype=np.float32),
    )
    sums = np.empty((TILE_PAIRS, LANES), dtype=np.float32)
    squares = np.empty((TILE_PAIRS, LANES), dtype=np.float32)
    for start in range(0, len(source), TILE_PAIRS):
        count = min(TILE_PAIRS, len(source) - start)
        ends = source[start : start + count], target[start : start + count]
        _fill_products(embeddings, positions, reads_positions, ends, tiles)
        fill_structure(structure[start : start + count], tiles[1])
        out[start : start + count] = offset
        for number in range(len(branches)):
            inner, bias, outer = branches[number]
            sums[:], squares[:] = 0, 0
            for block in range(inner.shape[0]):
                # rows beyond the last pair hold what an earlier tile left: they are not read
                for pair in range(0, count, PAIRS):
                    add_squared_block(
                        tiles[number], pair, inner.shape[1], inner, bias, outer, block,
                        sums, squares,
                    )  # fmt: skip
            for i in range(count):
                total, square = np.float32(0), np.float32(0)
                for lane in range(LANES):
                    total += sums[i, lane]
                    square += squares[i, lane]
                out[start + i] += total / np.sqrt(square / np.float32(width) + epsilon)


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _fill_products(
    embeddings: Array,
    positions: tuple[FloatArray, ...],
    reads_positions: bool,
    ends: tuple[Array, Array],
    tiles: tuple[FloatArray, FloatArray, FloatArray],
) -> None:
    """Products of the embeddings, and geometry of some pairs where it is read."""
    source, target = ends
    for i in range(len(source)):
        if i + ROWS_AHEAD < len(source):
            prefetch_node(embeddings, positions, reads_positions, source[i + ROWS_AHEAD])
            prefetch_node(embeddings, positions, reads_positions, target[i + ROWS_AHEAD])
        first, second = source[i], target[i]
        for k in range(embeddings.shape[1]):
            tiles[0][i, k] = as_float(embeddings[first, k]) * as_float(embeddings[second, k])
        if reads_positions:
            all_geometry(positions, first, second, tiles[2], i, 0)
