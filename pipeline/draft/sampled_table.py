"""A Parquet table as a draft looks at it: its footers, and a bounded sample of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from peg_core.errors import InputError
from peg_core.graph.edge_table import (
    RowGroup,
    column_chunks,
    find_parquet_files,
    list_row_groups,
    open_parquet,
    read_error,
)
from peg_core.graph.ids.id_types import id_type

# Rows that are read, from as many row groups, spread over the table.
SAMPLE_ROWS = 65_536
SAMPLE_GROUPS = 16
# Rows of which columns with lists are read too: they can be wide.
LIST_ROWS = 1_024


@dataclass(frozen=True)
class SampledTable:
    """What the ends of the files say, and some rows.

    Args:
        location: As the user gave it.
        groups: The row groups of all files.
        schema: Of the first file.
        rows: Some rows; lists are left out.
        lists: A few rows of the columns with lists.
    """

    location: str
    groups: Sequence[RowGroup]
    schema: pa.Schema
    rows: pl.DataFrame
    lists: pl.DataFrame

    @property
    def num_rows(self) -> int:
        """Of the whole table."""
        return sum(group.rows for group in self.groups)

    @property
    def is_whole(self) -> bool:
        """Whether the sample is all there is."""
        return len(self.rows) == self.num_rows

    @property
    def id_columns(self) -> list[str]:
        """Columns of a type that ids can have, in the order of the file."""
        return [field.name for field in self.schema if id_type(field.type) is not None]

    def type_of(self, column: str) -> pa.DataType:
        """As it is stored."""
        return self.schema.field(column).type

    @classmethod
    def read(cls, location: str, what: str) -> SampledTable:
        """Look at a table.

        Args:
            location: A file, a folder, a glob or a URL.
            what: One row of it, in the plural.

        Raises:
            InputError: It is no Parquet, or has no rows.
        """
        files = find_parquet_files(location)
        first = open_parquet(files[0])
        next(column_chunks(files[0], first.metadata), None)  # refuses encrypted columns
        schema = first.schema_arrow
        for name in schema.names:
            if schema.names.count(name) > 1:
                raise InputError.repeated_column(files[0], name, schema.names.count(name))
        groups = list_row_groups(files, [])
        if not groups:
            raise InputError.no_rows(location, what)
        nested = [field.name for field in schema if pa.types.is_nested(field.type)]
        plain = [name for name in schema.names if name not in nested]
        return cls(
            location,
            groups,
            schema,
            _sample(groups, plain, SAMPLE_ROWS),
            _sample(groups[:1], nested, LIST_ROWS),
        )


def _sample(groups: Sequence[RowGroup], columns: list[str], rows: int) -> pl.DataFrame:
    """The first rows of some row groups, at most ``rows`` of them."""
    if not columns:
        return pl.DataFrame()
    chosen = groups[:: -(-len(groups) // SAMPLE_GROUPS)]
    parts, left = [], rows
    for number, group in enumerate(chosen):
        share = left // (len(chosen) - number)
        try:
            parquet = open_parquet(group.file)
            batches = parquet.iter_batches(
                share, row_groups=[group.index], columns=columns, use_threads=False
            )
            batch = next(batches, None) if share else None
        except (pa.ArrowException, OSError) as error:
            raise read_error(group.file, error) from error
        if batch is not None:
            parts.append(pl.DataFrame(pa.Table.from_batches([batch])))
            left -= len(batch)
    return pl.concat(parts, how="diagonal_relaxed")
