"""Rows of nodes as kernels read them: read-only, in single or half precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic


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
