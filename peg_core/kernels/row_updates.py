"""One step of stochastic gradient descent: a row of one table against rows of another.

Products of a row with several others, and the change of all of them, are each one
loop over the columns: the row that they share stays in registers. numba neither
does that, because rows might overlap, nor prefetches, so the loops are written in
LLVM's own terms. Rows that are drawn twice are read and written one after the other,
as in a plain loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from peg_core.kernels.intrinsics import splat

# Tables have a multiple of so many float32 columns.
LANES = 8
# Sums may be reordered into fused multiply-adds; nothing else is relaxed.
RELAXED = ("contract",)


def padded_columns(dimensions: int) -> int:
    """The columns of a table for so many dimensions."""
    return -(-dimensions // LANES) * LANES


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def row_products(  # the arguments are numba types; the length of ``tile`` is the number of rows
    typing_context: Any,  # noqa: ARG001
    inputs: Any,
    row: Any,  # noqa: ARG001
    outputs: Any,
    targets: Any,
    first: Any,  # noqa: ARG001
    products: Any,
    tile: Any,
) -> tuple[Any, Callable[..., Any]]:
    """``products[t] <- inputs[row] . outputs[targets[first + t]]``."""
    signature = types.void(inputs, types.int64, outputs, targets, types.int64, products, tile)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _RowWriter(context, builder, signature, arguments).write_products()
        return context.get_dummy_value()

    return signature, generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def move_rows(
    typing_context: Any,  # noqa: ARG001
    inputs: Any,
    row: Any,  # noqa: ARG001
    outputs: Any,
    targets: Any,
    first: Any,  # noqa: ARG001
    slopes: Any,
    tile: Any,
) -> tuple[Any, Callable[..., Any]]:
    """Add ``slopes[t]`` times the row to target t, and times target t, as it was, to the row."""
    signature = types.void(inputs, types.int64, outputs, targets, types.int64, slopes, tile)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _RowWriter(context, builder, signature, arguments).write_moves()
        return context.get_dummy_value()

    return signature, generate


class _RowWriter:
    """Writes the LLVM instructions of one loop over columns."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        def array(position: int) -> Any:
            return context.make_array(signature.args[position])(
                context, builder, arguments[position]
            )

        self.builder = builder
        self.word, self.real = ir.IntType(64), ir.FloatType()
        self.vector = ir.VectorType(self.real, LANES)
        self.zero = ir.Constant(self.word, 0)
        self.count = signature.args[6].count
        inputs, outputs = array(0), array(2)
        self.columns = cgutils.unpack_tuple(builder, inputs.shape, 2)[1]
        self.own = self._row(inputs.data, arguments[1])
        targets = builder.gep(array(3).data, [arguments[4]])
        self.others = [
            self._row(outputs.data, builder.load(self._element(targets, t)))
            for t in range(self.count)
        ]
        self.numbers = array(5).data

    def write_products(self) -> None:
        builder = self.builder
        entry = builder.block
        body, done = (builder.append_basic_block(name) for name in ("body", "done"))
        builder.branch(body)
        builder.position_at_end(body)
        column = builder.phi(self.word)
        column.add_incoming(self.zero, entry)
        sums = [builder.phi(self.vector) for _ in self.others]
        own = self._vector(self.own, column)
        for total, other in zip(sums, self.others, strict=True):
            total.add_incoming(ir.Constant(self.vector, [0.0] * LANES), entry)
            product = builder.fmul(own, self._vector(other, column), flags=RELAXED)
            total.add_incoming(builder.fadd(total, product, flags=RELAXED), body)
        ends = [total.incomings[1][0] for total in sums]
        self._next(column, body, done)
        for t, total in enumerate(ends):
            builder.store(self._sum(total), self._element(self.numbers, t))

    def write_moves(self) -> None:
        builder = self.builder
        elements = [self._element(self.numbers, t) for t in range(self.count)]
        slopes = [splat(self.builder, self.vector, builder.load(element)) for element in elements]
        entry = builder.block
        body, done = (builder.append_basic_block(name) for name in ("body", "done"))
        builder.branch(body)
        builder.position_at_end(body)
        column = builder.phi(self.word)
        column.add_incoming(self.zero, entry)
        own = self._vector(self.own, column)
        moved = own
        for slope, other in zip(slopes, self.others, strict=True):
            value = self._vector(other, column)
            step = builder.fmul(slope, value, flags=RELAXED)
            moved = builder.fadd(moved, step, flags=RELAXED)
            step = builder.fmul(slope, own, flags=RELAXED)
            self._store(builder.fadd(value, step, flags=RELAXED), other, column)
        self._store(moved, self.own, column)
        self._next(column, body, done)

    def _next(self, column: Any, body: Any, done: Any) -> None:
        following = self.builder.add(column, ir.Constant(self.word, LANES))
        column.add_incoming(following, body)
        self.builder.cbranch(self.builder.icmp_signed("<", following, self.columns), body, done)
        self.builder.position_at_end(done)

    def _row(self, data: Any, number: Any) -> Any:
        return self.builder.gep(data, [self.builder.mul(number, self.columns)])

    def _element(self, data: Any, position: int) -> Any:
        return self.builder.gep(data, [ir.Constant(self.word, position)])

    def _pointer(self, row: Any, column: Any) -> Any:
        pointer = self.builder.gep(row, [column])
        return self.builder.bitcast(pointer, self.vector.as_pointer())

    def _vector(self, row: Any, column: Any) -> Any:
        return self.builder.load(self._pointer(row, column), align=4)

    def _store(self, value: Any, row: Any, column: Any) -> None:
        self.builder.store(value, self._pointer(row, column), align=4)

    def _sum(self, vector: Any) -> Any:
        """The sum of the lanes, halves added to halves."""
        builder, short = self.builder, ir.IntType(32)
        width = LANES
        while width > 1:
            half = width // 2
            chosen = [*range(half, width), *[0] * (LANES - half)]
            mask = ir.Constant(ir.VectorType(short, LANES), chosen)
            other = builder.shuffle_vector(vector, vector, mask)
            vector = builder.fadd(vector, other)
            width = half
        return builder.extract_element(vector, ir.Constant(short, 0))
