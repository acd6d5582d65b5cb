"""Columns of a node table as blocks of a dense feature matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from peg_core.errors import InputError
from peg_core.graph.edge_table import RowGroup, open_parquet, read_row_group, require_no_nulls

Layout = Literal["dense", "indices", "number"]
Block = npt.NDArray[np.float32]

# Features of a column at most: a row of as many takes 4 MB.
MAX_WIDTH = 1_000_000


@dataclass(frozen=True)
class Rows:
    """Some rows of a row group, from its row ``first`` on."""

    group: RowGroup
    first: int

    def refuse(self, column: str, bad: npt.NDArray[np.bool_], fault: str, advice: str) -> None:
        """Raise with the first of the ``bad`` rows [num_rows], if there is one."""
        if bad.any():
            raise InputError(
                f"column {column!r} of {self.group.file} holds {fault} in row "
                f"{self.first + int(bad.argmax()):,} of row group {self.group.index}; {advice}"
            )


@dataclass(frozen=True)
class FeatureColumn:
    """A column and the block of features that it fills.

    Args:
        name: Of the column.
        layout: ``dense``: a list of floats per node; ``indices``: a list of integers, the
            binary features that are 1; ``number``: one number or boolean.
        width: Features in the block.
    """

    name: str
    layout: Layout
    width: int

    @staticmethod
    def layout_of(groups: Sequence[RowGroup], name: str) -> Layout:
        """What the type of the column says, the same in all files."""
        found: dict[Layout, str] = {}
        for file in dict.fromkeys(group.file for group in groups):
            kind = open_parquet(file).schema_arrow.field(name).type
            layout = require_numbers(file, name, kind)
            found.setdefault(layout, f"{kind} in {file}")
            if len(found) > 1:
                needed = f"one kind everywhere (it is {next(iter(found.values()))})"
                raise InputError.wrong_type(file, name, found=kind, needed=needed)
        return next(iter(found))

    def checked(self, feature_width: int | None) -> Self:
        """The column itself, refused where the configuration asks for another width."""
        if feature_width not in (None, self.width):
            raise InputError(
                f"column {self.name!r} has {self.width:,} number(s) a row, `graph.feature_width` "
                f"is {feature_width:,}; it is meant for indices of binary features: leave it out"
            )
        return self

    def read(self, values: pa.Array, rows: Rows) -> Block:
        """The block of some rows, [num_rows, width]."""
        if self.layout == "indices":
            return self._binary(values, rows)
        require_filled(values, rows, self.name)
        if self.layout == "dense":
            lengths: npt.NDArray[Any] = np.asarray(pc.list_value_length(values))
            fault = f"another number of values than the {self.width:,} of the first row"
            rows.refuse(self.name, lengths != self.width, fault, "pad the shorter rows")
            values = values.flatten()
        numbers: npt.NDArray[Any] = np.asarray(values.cast(pa.float64()))
        with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused
            block = numbers.reshape(-1, self.width).astype(np.float32)
        bad = np.asarray(~np.isfinite(block).all(axis=1))
        rows.refuse(self.name, bad, "NaN or infinity", "features must be finite: mend the value")
        return block

    def _binary(self, values: pa.Array, rows: Rows) -> Block:
        """Ones at the listed indices; a null list is an empty one."""
        lengths = np.asarray(pc.fill_null(pc.list_value_length(values), 0))
        row = np.repeat(np.arange(len(values)), lengths)
        flat = np.asarray(pc.fill_null(values.flatten().cast(pa.int64(), safe=False), -1))
        outside = np.zeros(len(values), dtype=bool)
        outside[row[(flat < 0) | (flat >= self.width)]] = True
        fault = f"an index outside 0 .. {self.width - 1:,}"
        advice = "mend the index, or raise `graph.feature_width`"
        rows.refuse(self.name, outside, fault, advice)
        block = np.zeros((len(values), self.width), dtype=np.float32)
        block[row, flat] = 1.0
        return block


def require_numbers(file: str, name: str, kind: pa.DataType) -> Layout:
    """The layout of a column; one that holds no numbers is refused."""
    layout = _layout(kind)
    if layout is None:
        needed = "a number or a list of numbers"
        raise InputError.wrong_type(file, name, found=kind, needed=needed)
    return layout


def require_filled(values: pa.Array, rows: Rows, column: str) -> None:
    """Refuse nulls; all of the row group is read again to count them."""
    if values.null_count:
        require_no_nulls(read_row_group(rows.group, [column]), rows.group, [column])


def _layout(kind: pa.DataType) -> Layout | None:
    """The layout of a type, or None where it holds no numbers."""
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if any(is_kind(kind) for is_kind in lists):
        if pa.types.is_integer(kind.value_type):
            return "indices"
        return "dense" if pa.types.is_floating(kind.value_type) else None
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return "number" if is_number else None
