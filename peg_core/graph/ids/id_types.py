"""The four kinds of node id, and how columns of any file become one of them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from peg_core.errors import InputError

INTEGER, UNSIGNED = pa.int64(), pa.uint64()
TEXT, BINARY = pa.large_string(), pa.large_binary()


def id_type(kind: pa.DataType) -> pa.DataType | None:
    """The kind of id that a column type holds, or None where it can hold no ids."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_uint64(kind):
        return UNSIGNED
    if pa.types.is_integer(kind):
        return INTEGER
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return TEXT
    is_binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return BINARY if is_binary or pa.types.is_fixed_size_binary(kind) else None


def common_id_type(columns: Iterable[tuple[str, str, pa.DataType]]) -> pa.DataType:
    """One kind for all columns, given as (file, column, type); mixtures are refused.

    Signed and unsigned integers go together as unsigned; a negative id among them
    is found when it is read.
    """
    first: dict[pa.DataType, tuple[str, str, pa.DataType]] = {}
    for file, column, kind in columns:
        found = id_type(kind)
        if found is None:
            raise InputError.wrong_type(file, column, found=kind, needed="an integer or string id")
        first.setdefault(found, (file, column, kind))
    if first.keys() == {INTEGER, UNSIGNED}:
        return UNSIGNED
    if len(first) > 1:
        (file, column, kind), (other_file, other_column, other) = list(first.values())[:2]
        raise InputError.wrong_type(
            other_file,
            other_column,
            found=other,
            needed=f"one kind of id everywhere ({column!r} of {file} is {kind})",
        )
    return next(iter(first))


def joint_id_type(kinds: Iterable[pa.DataType]) -> pa.DataType:
    """What ids of several kinds of node are written as in one column."""
    found = set(kinds)
    if len(found) == 1:
        return found.pop()
    return BINARY if BINARY in found else TEXT


def cast_ids(ids: pa.Array, kind: pa.DataType) -> pa.Array:
    """Ids as another type that can hold them."""
    if pa.types.is_integer(ids.type) and kind == BINARY:
        ids = ids.cast(TEXT)
    return ids if ids.type == kind else ids.cast(kind)


def normalise_ids(
    column: pa.ChunkedArray | pa.Array, wanted: pa.DataType | None = None
) -> pa.Array:
    """Ids as 64-bit integers, strings or bytes, whatever width or dictionary the file had."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    target = wanted or id_type(array.type)
    return array if array.type == target else array.cast(target)


def string_buffers(values: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Offsets [len + 1] and bytes of a large string or binary array."""
    _, offsets, data = values.buffers()
    first = np.frombuffer(offsets, dtype=np.int64)[values.offset : values.offset + len(values) + 1]
    if not len(first):
        first = np.zeros(1, dtype=np.int64)
    if data is None or not data.size:
        return first, np.zeros(1, dtype=np.uint8)
    return first, np.frombuffer(data, dtype=np.uint8)
