"""One step of a three-term recurrence with ``D^-1 A``: the kernel all solvers share.

``previous <- alpha D^-1 A current + beta current + gamma previous`` on a block of
columns. Working with ``z = D^-1/2 x`` needs no array of matrix values: an
unweighted graph costs one index per entry. Sums of a row are held in vector
registers, and rows that will be needed are prefetched; numba does neither by
itself, so the inner loop is written in LLVM's own terms. A C kernel measured the
same (docs/decisions/0008-sparse-product.md).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from peg_core.kernels.intrinsics import CACHE_LINE_BYTES, prefetch_line, splat
from peg_core.kernels.thread_spans import map_spans

IntArray = npt.NDArray[np.integer[Any]]
FloatArray = npt.NDArray[np.floating[Any]]

# Columns of a block come in multiples of one vector: 8 float32 or 4 float64.
VECTOR_BYTES = 32
BLOCK_WIDTHS = (8, 16, 32)
PREFETCH_DISTANCE = 16
# Row ranges are handed to threads; a product smaller than this stays in one.
PARTS = 16
SMALLEST_PRODUCT = 1_000_000


def balanced_rows(indptr: IntArray, parts: int = PARTS) -> npt.NDArray[np.int64]:
    """Row numbers that cut the matrix into ``parts`` of equal work, [parts + 1]."""
    work = np.asarray(indptr) + np.arange(len(indptr))
    goals = np.linspace(0, float(work[-1]), parts + 1)
    cuts = np.searchsorted(work, goals).astype(np.int64)
    cuts[0], cuts[-1] = 0, len(indptr) - 1
    return cuts


def recurrence_step(
    indptr: IntArray,
    indices: IntArray,
    weights: FloatArray | None,
    inverse_degrees: FloatArray,
    current: FloatArray,
    previous: FloatArray,
    *,
    alpha: float,
    beta: float,
    gamma: float,
    cuts: IntArray | None = None,
) -> None:
    """``previous <- alpha D^-1 A current + beta current + gamma previous``, in place.

    Every row is summed in the order of its entries, so the result does not depend
    on the number of threads (``numba.get_num_threads()``).

    Args:
        indptr: [num_nodes + 1].
        indices: [entries].
        weights: [entries] in the type of ``current``, or None.
        inverse_degrees: [num_nodes] in the type of ``current``.
        current: [num_nodes, width], contiguous, width one of ``BLOCK_WIDTHS``.
        previous: [num_nodes, width], contiguous; not the same memory as ``current``.
        cuts: Rows at which the work is cut for the threads; by default
            :func:`balanced_rows`.
    """
    kind = current.dtype.type
    width = current.shape[1]
    if width not in BLOCK_WIDTHS or previous.shape != current.shape:
        raise ValueError(f"a block is {current.shape}, needed is a width in {BLOCK_WIDTHS}")
    # only its length matters: a tuple's length is known when the kernel is compiled
    tile = (0,) * (width * current.itemsize // VECTOR_BYTES)
    factors = (kind(alpha), kind(beta), kind(gamma))
    arrays = (indptr, indices, weights, inverse_degrees, current, previous)
    if numba.get_num_threads() == 1 or len(indices) * width < SMALLEST_PRODUCT:
        _step(0, len(indptr) - 1, *arrays, tile, factors)
        return
    cuts = balanced_rows(indptr) if cuts is None else cuts
    spans = list(itertools.pairwise(cuts.tolist()))
    map_spans(lambda span: _step(*span, *arrays, tile, factors), spans)


@numba.njit(cache=True, nogil=True)
def _step(
    first_row: int,
    end_row: int,
    indptr: IntArray,
    indices: IntArray,
    weights: FloatArray | None,
    inverse_degrees: FloatArray,
    current: FloatArray,
    previous: FloatArray,
    tile: tuple[int, ...],
    factors: tuple[Any, Any, Any],
) -> None:
    alpha, beta, gamma = factors
    last = len(indices) - 1
    for row in range(first_row, end_row):
        start, stop = indptr[row], indptr[row + 1]
        own = (current, previous, row, tile, alpha * inverse_degrees[row])
        _row(indices, weights, start, stop, last, *own, beta, gamma)


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def _row(  # the arguments are numba types; only some of them decide anything
    typing_context: Any,  # noqa: ARG001
    indices: Any,
    weights: Any,
    start: Any,  # noqa: ARG001
    stop: Any,  # noqa: ARG001
    last: Any,  # noqa: ARG001
    current: Any,
    previous: Any,
    row: Any,  # noqa: ARG001
    tile: Any,
    scale: Any,  # noqa: ARG001
    beta: Any,  # noqa: ARG001
    gamma: Any,  # noqa: ARG001
) -> tuple[Any, Callable[..., Any]]:
    """``previous[row] <- scale sum_e w_e current[indices_e] + beta current[row] + ...``."""
    real = current.dtype
    signature = types.void(
        indices,
        weights,
        types.int64,
        types.int64,
        types.int64,
        current,
        previous,
        types.int64,
        tile,
        real,
        real,
        real,
    )

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _RowWriter(context, builder, signature, arguments).write()
        return context.get_dummy_value()

    return signature, generate


class _RowWriter:
    """Writes the LLVM instructions of one row."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        kinds = signature.args
        self.builder = builder
        self.word = ir.IntType(64)
        self.vectors = kinds[8].count
        real = context.get_value_type(kinds[5].dtype)
        self.lanes = VECTOR_BYTES // (kinds[5].dtype.bitwidth // 8)
        self.vector = ir.VectorType(real, self.lanes)
        self.line = CACHE_LINE_BYTES // (kinds[5].dtype.bitwidth // 8)
        self.unsigned = not kinds[0].dtype.signed

        def data(position: int) -> Any:
            return context.make_array(kinds[position])(context, builder, arguments[position]).data

        self.indices, self.current, self.previous = data(0), data(5), data(6)
        self.weights = None if isinstance(kinds[1], types.NoneType) else data(1)
        self.start, self.stop, self.last = arguments[2:5]
        self.row = arguments[7]
        self.scale, self.beta, self.gamma = arguments[9:12]

    def write(self) -> None:
        sums = self._sum_neighbours()
        builder = self.builder
        factors = (self.scale, self.beta, self.gamma)
        scale, beta, gamma = (splat(builder, self.vector, factor) for factor in factors)
        for number, total in enumerate(sums):
            own = builder.load(self._vector_at(self.current, self.row, number), align=4)
            pointer = self._vector_at(self.previous, self.row, number)
            before = builder.load(pointer, align=4)
            mixed = builder.fadd(builder.fmul(beta, own), builder.fmul(gamma, before))
            builder.store(builder.fadd(builder.fmul(scale, total), mixed), pointer, align=4)

    def _sum_neighbours(self) -> list[Any]:
        builder, word = self.builder, self.word
        entry = builder.block
        head, body, done = (builder.append_basic_block(n) for n in ("head", "body", "done"))
        builder.branch(head)
        builder.position_at_end(head)
        position = builder.phi(word)
        position.add_incoming(self.start, entry)
        sums = [builder.phi(self.vector) for _ in range(self.vectors)]
        zero = ir.Constant(self.vector, [0.0] * self.lanes)
        for total in sums:
            total.add_incoming(zero, entry)
        builder.cbranch(builder.icmp_signed("<", position, self.stop), body, done)
        builder.position_at_end(body)
        self._prefetch(position)
        node = self._index(position)
        factor = None
        if self.weights is not None:
            weight = builder.load(builder.gep(self.weights, [position]))
            factor = splat(builder, self.vector, weight)
        for number, total in enumerate(sums):
            value = builder.load(self._vector_at(self.current, node, number), align=4)
            if factor is not None:
                value = builder.fmul(factor, value)
            total.add_incoming(builder.fadd(total, value), body)
        position.add_incoming(builder.add(position, ir.Constant(word, 1)), body)
        builder.branch(head)
        builder.position_at_end(done)
        return sums

    def _prefetch(self, position: Any) -> None:
        builder = self.builder
        ahead = builder.add(position, ir.Constant(self.word, PREFETCH_DISTANCE))
        ahead = builder.select(builder.icmp_signed("<", ahead, self.last), ahead, self.last)
        node = self._index(ahead)
        for first in range(0, self.vectors * self.lanes, self.line):
            prefetch_line(builder, self._vector_at(self.current, node, first // self.lanes))

    def _index(self, position: Any) -> Any:
        node = self.builder.load(self.builder.gep(self.indices, [position]))
        if node.type.width == self.word.width:
            return node
        extend = self.builder.zext if self.unsigned else self.builder.sext
        return extend(node, self.word)

    def _vector_at(self, array: Any, row: Any, number: int) -> Any:
        builder, width = self.builder, self.vectors * self.lanes
        offset = builder.mul(row, ir.Constant(self.word, width))
        offset = builder.add(offset, ir.Constant(self.word, number * self.lanes))
        return builder.bitcast(builder.gep(array, [offset]), self.vector.as_pointer())
