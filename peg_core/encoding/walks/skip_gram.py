"""Skip-gram with negative sampling: the kernels.

Mikolov et al., Distributed representations of words and phrases, 2013, with nodes for
words and walks for sentences; LINE's edges are walks of one step.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from peg_core.encoding.walks.alias_table import draw
from peg_core.encoding.walks.random_walks import (
    GOLDEN,
    below,
    first_order_step,
    mix,
    start_state,
    walk,
)
from peg_core.graph.graph_store import IntArray
from peg_core.kernels.intrinsics import prefetch_row
from peg_core.kernels.row_updates import move_rows, row_products

# Products beyond this count as certain and change nothing, as in word2vec.
LARGEST_PRODUCT = 6.0
TABLE_SIZE = 1_000

Float32Array = npt.NDArray[np.float32]


class SigmoidTable(NamedTuple):
    """The logistic function and its negative logarithm between the largest products."""

    values: Float32Array  # [TABLE_SIZE]
    losses: Float32Array  # [TABLE_SIZE]

    @classmethod
    def build(cls) -> SigmoidTable:
        middle = (np.arange(TABLE_SIZE) + 0.5) / TABLE_SIZE
        values = 1 / (1 + np.exp(LARGEST_PRODUCT * (1 - 2 * middle)))
        return cls(values.astype(np.float32), -np.log(values).astype(np.float32))


class Tables(NamedTuple):
    """What is trained: float32, [num_nodes, padded columns] each.

    ``outputs`` is the same array as ``inputs`` in LINE's first order.
    """

    inputs: Float32Array
    outputs: Float32Array


@numba.njit(cache=True, nogil=True)
def find_slopes(
    products: Float32Array,
    targets: IntArray,
    first: int,
    rate: float,
    sigmoids: Float32Array,
    losses: Float32Array,
    count: int,
) -> float:
    """Turn products into step sizes, in place; target 0 is the true one. Returns the loss."""
    loss = 0.0
    for t in range(count):
        product = products[t]
        position = int(
            (product + np.float32(LARGEST_PRODUCT)) * np.float32(TABLE_SIZE / (2 * LARGEST_PRODUCT))
        )
        position = min(max(position, 0), TABLE_SIZE - 1)
        inside = abs(product) < LARGEST_PRODUCT
        if t == 0:
            loss += losses[position]
            slope = np.float32(rate) * (np.float32(1) - sigmoids[position])
        else:
            loss += losses[TABLE_SIZE - 1 - position]
            inside = inside and targets[first + t] != targets[first]
            slope = -np.float32(rate) * sigmoids[position]
        products[t] = slope if inside else np.float32(0)
    return loss


@numba.njit(cache=True, nogil=True)
def draw_noise(
    noise: npt.NDArray[np.uint32], targets: IntArray, first: int, count: int, state: np.uint64
) -> np.uint64:
    """Draw all targets but the true one; returns the state after it."""
    for t in range(first + 1, first + count):
        state += GOLDEN
        targets[t] = draw(noise, mix(state))
    return state


@numba.njit(cache=True, nogil=True)
def prefetch_targets(
    inputs: Float32Array,
    outputs: Float32Array,
    row: int,
    targets: IntArray,
    first: int,
    count: int,
) -> None:
    """Ask for the rows that the next pair will need."""
    prefetch_row(inputs, row)
    for t in range(1, count):
        prefetch_row(outputs, targets[first + t])


@numba.njit(cache=True, nogil=True)
def train_walks(
    indptr: IntArray,
    indices: IntArray,
    cumulative: Float32Array,
    starts: IntArray,
    length: int,
    back: float,
    away: float,
    key: np.uint64,
    window: int,
    shared: bool,
    noise: npt.NDArray[np.uint32],
    sigmoids: Float32Array,
    losses: Float32Array,
    inputs: Float32Array,
    outputs: Float32Array,
    rate: float,
    rate_change: float,
    tile: tuple[int, ...],
) -> tuple[float, int]:
    """Walk from every start and train on the pairs within the window.

    Args:
        indptr, indices, cumulative: A :class:`WalkGraph`.
        starts: Nodes, [num_starts].
        length, back, away: A :class:`WalkRule`.
        key: Of the pass.
        window: Largest distance of a pair on a walk; shrinks at random as in word2vec.
        shared: Draw noise once per window, not once per pair.
        noise: Alias table of the noise, [num_nodes, 2].
        sigmoids, losses: A :class:`SigmoidTable`.
        inputs, outputs: The tables.
        rate, rate_change: Learning rate at the first start, and its change per start.
        tile: As long as the noise of a pair, and one more.

    Returns:
        The sum of the losses, and the number of pairs.
    """
    count = len(tile)
    path = np.empty(length, dtype=np.int64)
    targets = np.empty(2 * window * count, dtype=np.int64)
    products = np.empty(count, dtype=np.float32)
    loss, pairs = 0.0, 0
    for number in range(len(starts)):
        state = start_state(key, starts[number])
        reached, state = walk(
            indptr, indices, cumulative, starts[number], length, back, away, state, path
        )
        own_rate = rate + rate_change * number
        for i in range(reached):
            state += GOLDEN
            reach = window - below(mix(state), window)
            first, stop = max(0, i - reach), min(reached, i + reach + 1)
            sets = 1 if shared else stop - first - 1
            for offset in range(0, sets * count, count):
                targets[offset] = path[i]
                state = draw_noise(noise, targets, offset, count, state)
            if stop - first > 1:
                prefetch_targets(inputs, outputs, path[first + (first == i)], targets, 0, count)
            offset = 0
            for j in range(first, stop):
                if j == i:
                    continue
                following = j + 1 + (j + 1 == i)
                if following < stop:
                    ahead = offset if shared else offset + count
                    fresh = 0 if shared else count
                    prefetch_targets(inputs, outputs, path[following], targets, ahead, fresh)
                row_products(inputs, path[j], outputs, targets, offset, products, tile)
                loss += find_slopes(products, targets, offset, own_rate, sigmoids, losses, count)
                move_rows(inputs, path[j], outputs, targets, offset, products, tile)
                pairs += 1
                offset += 0 if shared else count
    return loss, pairs


@numba.njit(cache=True, nogil=True)
def train_edges(
    indptr: IntArray,
    indices: IntArray,
    cumulative: Float32Array,
    first: int,
    stop: int,
    key: np.uint64,
    sources: npt.NDArray[np.uint32],
    noise: npt.NDArray[np.uint32],
    sigmoids: Float32Array,
    losses: Float32Array,
    inputs: Float32Array,
    outputs: Float32Array,
    rate: float,
    rate_change: float,
    tile: tuple[int, ...],
) -> tuple[float, int]:
    """Draw edges by weight and train on each as on a pair.

    Args:
        first, stop: Numbers of the draws; a draw depends on its number alone.
        sources: Alias table of the weighted degrees, [num_nodes, 2].

    The others, and what is returned, are as in :func:`train_walks`.
    """
    count = len(tile)
    rows = np.empty(2, dtype=np.int64)
    targets = np.empty(2 * count, dtype=np.int64)
    products = np.empty(count, dtype=np.float32)
    loss = 0.0
    for number in range(first, stop + 1):  # one ahead: the next pair's rows are on their way
        if number < stop:
            side = (number - first) % 2
            offset = side * count
            state = start_state(key, number)
            rows[side] = draw(sources, mix(state))
            state += GOLDEN
            bits = mix(state)
            targets[offset] = first_order_step(indptr, indices, cumulative, rows[side], bits)
            draw_noise(noise, targets, offset, count, state)
            prefetch_targets(inputs, outputs, rows[side], targets, offset, count)
            prefetch_row(outputs, targets[offset])
        if number > first:
            side = (number - first - 1) % 2
            offset = side * count
            row_products(inputs, rows[side], outputs, targets, offset, products, tile)
            own_rate = rate + rate_change * (number - 1 - first)
            loss += find_slopes(products, targets, offset, own_rate, sigmoids, losses, count)
            move_rows(inputs, rows[side], outputs, targets, offset, products, tile)
    return loss, stop - first
