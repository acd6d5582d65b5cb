"""LLVM instructions that several kernels write: asking for memory ahead, filling a vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

CACHE_LINE_BYTES = 64


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def prefetch_row(
    typing_context: Any,  # noqa: ARG001
    array: Any,
    row: Any,  # noqa: ARG001
) -> tuple[Any, Callable[..., Any]]:
    """Ask for a row (of a matrix) or an element (of a vector); it may lie anywhere in memory."""
    signature = types.void(array, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values = context.make_array(signature.args[0])(context, builder, arguments[0])
        stride = cgutils.unpack_tuple(builder, values.strides)[0]
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(64)
        start = builder.gep(builder.bitcast(values.data, byte), [builder.mul(arguments[1], stride)])
        line = ir.Constant(word, CACHE_LINE_BYTES)
        lines = builder.udiv(builder.add(stride, ir.Constant(word, CACHE_LINE_BYTES - 1)), line)
        with cgutils.for_range(builder, lines) as loop:
            prefetch_line(builder, builder.gep(start, [builder.mul(loop.index, line)]))
        return context.get_dummy_value()

    return signature, generate


def prefetch_line(builder: Any, pointer: Any) -> None:
    """Write the instruction that asks for the cache line at ``pointer``."""
    byte, short = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte, short, short, short])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
    hints = [ir.Constant(short, hint) for hint in (0, 3, 1)]  # read, keep, data
    builder.call(function, [builder.bitcast(pointer, byte), *hints])


def splat(builder: Any, vector: Any, value: Any) -> Any:
    """Write the instructions that put one value into every lane of a vector type."""
    short = ir.IntType(32)
    undefined = ir.Constant(vector, ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(short, 0))
    mask = ir.Constant(ir.VectorType(short, vector.count), [0] * vector.count)
    return builder.shuffle_vector(first, undefined, mask)
