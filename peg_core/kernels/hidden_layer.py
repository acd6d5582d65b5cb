"""The hidden layer of a head on a tile of pairs, with all sums in registers.

Written as LLVM instructions: a loop that numba compiles from Python keeps the sums in
memory and reaches a third of the rate. Every pair is summed in the same order whatever
its row in the tile, so a logit does not depend on the pairs around it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from peg_core.kernels.intrinsics import splat

# Twelve vectors of sums, two of weights and one value fit into sixteen registers.
LANES = 8
VECTORS = 2
PAIRS = 6
BLOCK = LANES * VECTORS

FloatArray = npt.NDArray[np.float32]


def pack_columns(inner: FloatArray) -> FloatArray:
    """Blocks of 16 columns, each contiguous, padded with zeros: [blocks, num_inputs, 16]."""
    num_inputs, width = inner.shape
    blocks = -(-width // BLOCK)
    padded = np.zeros((num_inputs, blocks * BLOCK), dtype=np.float32)
    padded[:, :width] = inner
    return np.ascontiguousarray(padded.reshape(num_inputs, blocks, BLOCK).transpose(1, 0, 2))


def pack_values(values: FloatArray) -> FloatArray:
    """A value per column, padded with zeros: [blocks, 16]."""
    padded = np.zeros((-(-len(values) // BLOCK), BLOCK), dtype=np.float32)
    padded.reshape(-1)[: len(values)] = values
    return padded


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def add_hidden_block(  # the arguments are numba types
    typing_context: Any,  # noqa: ARG001
    tile: Any,
    first_pair: Any,  # noqa: ARG001
    num_inputs: Any,  # noqa: ARG001
    inner: Any,
    bias: Any,
    outer: Any,
    block: Any,  # noqa: ARG001
    sums: Any,
) -> tuple[Any, Callable[..., Any]]:
    """``sums[pair] += outer * relu(tile[pair] inner + bias)`` for six pairs and 16 columns.

    Shapes: tile [pairs, num_inputs]; inner [blocks, num_inputs, 16]; bias and outer
    [blocks, 16]; sums [pairs, 8], whose eight numbers together are the logit.
    """
    signature = types.void(
        tile, types.int64, types.int64, inner, bias, outer, types.int64, sums
    )  # fmt: skip

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _BlockWriter(context, builder, signature, arguments).write()
        return context.get_dummy_value()

    return signature, generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def add_squared_block(  # the arguments are numba types
    typing_context: Any,  # noqa: ARG001
    tile: Any,
    first_pair: Any,  # noqa: ARG001
    num_inputs: Any,  # noqa: ARG001
    inner: Any,
    bias: Any,
    outer: Any,
    block: Any,  # noqa: ARG001
    sums: Any,
    squares: Any,
) -> tuple[Any, Callable[..., Any]]:
    """As :func:`add_hidden_block`, and ``squares[pair] += (tile[pair] inner + bias)^2``.

    Shapes: squares [pairs, 8], whose eight numbers together are the sum over all columns.
    """
    signature = types.void(
        tile, types.int64, types.int64, inner, bias, outer, types.int64, sums, squares
    )  # fmt: skip

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _BlockWriter(context, builder, signature, arguments).write()
        return context.get_dummy_value()

    return signature, generate


class _BlockWriter:
    """Writes the LLVM instructions of one block; of one with squares where there is room."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        self.builder = builder
        self.word = ir.IntType(64)
        self.vector = ir.VectorType(ir.FloatType(), LANES)

        def data(position: int) -> Any:
            kind = signature.args[position]
            return context.make_array(kind)(context, builder, arguments[position]).data

        self.tile, self.inner, self.bias = data(0), data(3), data(4)
        self.outer, self.sums = data(5), data(7)
        self.squares = data(8) if len(arguments) > 8 else None
        self.first_pair, self.num_inputs, self.block = arguments[1], arguments[2], arguments[6]

    def write(self) -> None:
        builder = self.builder
        totals = self._sum_inputs()
        zero = ir.Constant(self.vector, [0.0] * LANES)
        start = builder.mul(self.block, self._number(BLOCK))
        biases = [self._load(self.bias, start, number) for number in range(VECTORS)]
        outers = [self._load(self.outer, start, number) for number in range(VECTORS)]
        for pair in range(PAIRS):
            row = builder.mul(self._pair(pair), self._number(LANES))
            logit = self._load(self.sums, row, 0)
            square = None if self.squares is None else self._load(self.squares, row, 0)
            for number in range(VECTORS):
                hidden = builder.fadd(totals[pair * VECTORS + number], biases[number])
                if square is not None:
                    square = self._add_product(square, hidden, hidden)
                positive = builder.fcmp_ordered(">", hidden, zero)
                logit = self._add_product(logit, builder.select(positive, hidden, zero),
                                          outers[number])  # fmt: skip
            builder.store(logit, self._pointer(self.sums, row, 0), align=4)
            if square is not None:
                builder.store(square, self._pointer(self.squares, row, 0), align=4)

    def _sum_inputs(self) -> list[Any]:
        """The products of six rows of the tile and 16 columns of the weights."""
        builder, word = self.builder, self.word
        rows = [builder.mul(self._pair(pair), self.num_inputs) for pair in range(PAIRS)]
        columns = builder.mul(builder.mul(self.block, self.num_inputs), self._number(BLOCK))
        entry = builder.block
        head, body, done = (builder.append_basic_block(n) for n in ("head", "body", "done"))
        builder.branch(head)
        builder.position_at_end(head)
        input_index = builder.phi(word)
        input_index.add_incoming(self._number(0), entry)
        totals = [builder.phi(self.vector) for _ in range(PAIRS * VECTORS)]
        zero = ir.Constant(self.vector, [0.0] * LANES)
        for total in totals:
            total.add_incoming(zero, entry)
        builder.cbranch(builder.icmp_signed("<", input_index, self.num_inputs), body, done)
        builder.position_at_end(body)
        column = builder.add(columns, builder.mul(input_index, self._number(BLOCK)))
        weights = [self._load(self.inner, column, number) for number in range(VECTORS)]
        for pair, row in enumerate(rows):
            value = builder.load(builder.gep(self.tile, [builder.add(row, input_index)]))
            spread = splat(self.builder, self.vector, value)
            for number in range(VECTORS):
                total = totals[pair * VECTORS + number]
                total.add_incoming(self._add_product(total, spread, weights[number]), body)
        input_index.add_incoming(builder.add(input_index, self._number(1)), body)
        builder.branch(head)
        builder.position_at_end(done)
        return totals

    def _pair(self, number: int) -> Any:
        return self.builder.add(self.first_pair, self._number(number))

    def _number(self, value: int) -> Any:
        return ir.Constant(self.word, value)

    def _add_product(self, total: Any, first: Any, second: Any) -> Any:
        product = self.builder.fmul(first, second, flags=("contract",))
        return self.builder.fadd(total, product, flags=("contract",))

    def _pointer(self, array: Any, start: Any, number: int) -> Any:
        offset = self.builder.add(start, self._number(number * LANES))
        return self.builder.bitcast(self.builder.gep(array, [offset]), self.vector.as_pointer())

    def _load(self, array: Any, start: Any, number: int) -> Any:
        return self.builder.load(self._pointer(array, start, number), align=4)
