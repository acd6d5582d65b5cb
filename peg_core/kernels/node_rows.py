"""Reading rows of nodes inside kernels: half precision, and rows asked for ahead of time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

CACHE_LINE_BYTES = 64


def frozen_rows(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A read-only contiguous view: one compiled kernel serves maps and arrays in memory."""
    view = np.ascontiguousarray(array).view(np.ndarray)
    view.flags.writeable = False
    return view


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def as_float(typing_context: Any, value: Any) -> tuple[Any, Callable[..., Any]]:  # noqa: ARG001
    """A float32 as it is; 16 bits (numba knows no float16 here) read as a half-precision number."""
    if value == types.uint16:

        def extend(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            del context, signature
            half = builder.bitcast(arguments[0], ir.HalfType())
            return builder.fpext(half, ir.FloatType())

        return types.float32(types.uint16), extend

    def keep(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        del context, builder, signature
        return arguments[0]

    return types.float32(types.float32), keep


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
        byte, short, word = ir.IntType(8).as_pointer(), ir.IntType(32), ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [byte, short, short, short])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        start = builder.gep(builder.bitcast(values.data, byte), [builder.mul(arguments[1], stride)])
        line = ir.Constant(word, CACHE_LINE_BYTES)
        lines = builder.udiv(builder.add(stride, ir.Constant(word, CACHE_LINE_BYTES - 1)), line)
        with cgutils.for_range(builder, lines) as loop:
            place = builder.gep(start, [builder.mul(loop.index, line)])
            hints = [ir.Constant(short, hint) for hint in (0, 3, 1)]  # read, keep, data
            builder.call(function, [place, *hints])
        return context.get_dummy_value()

    return signature, generate
