"""Parquet tables of edges or pairs: found, checked, read by row group."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from peg_core.errors import InputError


@dataclass(frozen=True)
class RowGroup:
    """A part of a Parquet file that is read on its own."""

    file: str
    index: int
    rows: int


def find_parquet_files(location: str) -> list[Path]:
    """The files behind a path, folder or glob, sorted by name."""
    path = Path(location)
    if path.is_dir():
        files = sorted(p for p in path.rglob("*.parquet") if not p.name.startswith((".", "_")))
    elif path.is_file():
        files = [path]
    else:
        files = sorted(Path(name) for name in glob.glob(location, recursive=True))
    if not files:
        raise InputError.no_such_file(location)
    return files


def open_parquet(file: Path | str) -> pq.ParquetFile:
    """Open a file, its data memory-mapped, or say why it cannot be read."""
    try:
        return pq.ParquetFile(file, memory_map=True)
    except FileNotFoundError as error:
        raise InputError.no_such_file(file) from error
    except (pa.ArrowException, OSError) as error:
        raise InputError.unreadable(file, error) from error


def list_row_groups(files: Iterable[Path], columns: Sequence[str]) -> list[RowGroup]:
    """The non-empty row groups of files that all have ``columns``."""
    groups = []
    for file in files:
        parquet = open_parquet(file)
        for column in columns:
            if column not in parquet.schema_arrow.names:
                raise InputError.missing_column(file, column, parquet.schema_arrow.names)
        for index in range(parquet.num_row_groups):
            rows = parquet.metadata.row_group(index).num_rows
            if rows:
                groups.append(RowGroup(str(file.absolute()), index, rows))
    return groups


def check_id_columns(files: Iterable[Path], columns: Sequence[str]) -> bool:
    """Whether the id columns hold strings (else integers); mixtures are refused."""
    kinds: dict[bool, tuple[Path, str, pa.DataType]] = {}
    for file in files:
        schema = open_parquet(file).schema_arrow
        for column in columns:
            kind = schema.field(column).type
            if pa.types.is_dictionary(kind):
                kind = kind.value_type
            is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
            if not is_text and not pa.types.is_integer(kind):
                raise InputError.wrong_type(
                    file, column, found=kind, needed="an integer or string id"
                )
            kinds[is_text] = (file, column, kind)
    if len(kinds) == 2:
        (file, column, kind), (other_file, other_column, other_kind) = kinds.values()
        raise InputError.wrong_type(
            file,
            column,
            found=kind,
            needed=f"one kind of id everywhere ({other_column!r} of {other_file} is {other_kind})",
        )
    return next(iter(kinds))


def read_row_group(group: RowGroup, columns: Sequence[str] | None = None) -> pa.Table:
    """Read one row group; damaged pages are reported with the file's name."""
    parquet = open_parquet(group.file)
    try:
        return parquet.read_row_group(group.index, columns=columns, use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise InputError.unreadable(group.file, error) from error


def require_no_nulls(table: pa.Table, group: RowGroup, columns: Sequence[str]) -> None:
    """Refuse a table with nulls in ``columns``, naming the first."""
    for column in columns:
        values = table[column]
        if values.null_count:
            row = pc.index(values.is_null(), True).as_py()
            raise InputError.null_value(
                group.file, column, row_group=group.index, row=row, count=values.null_count
            )
