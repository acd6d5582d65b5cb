"""Parquet tables of edges or pairs: found, checked, read by row group."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from peg_core.errors import InputError
from peg_core.graph.file_format import convertible, other_format, require_regular
from peg_core.graph.ids.id_types import common_id_type
from peg_core.object_url import (
    ObjectUrl,
    StorageError,
    absolute,
    find_objects,
    is_url,
    require_location,
)

PROBE_BYTES = 1 << 16


@dataclass(frozen=True)
class RowGroup:
    """A part of a Parquet file that is read on its own."""

    file: str
    index: int
    rows: int


def find_parquet_files(location: str) -> list[str]:
    """The files behind a path or URL, a folder of either or a glob, sorted by name.

    Folders are searched with all their subfolders, so hive partitions are found too;
    the values in their names are not turned into columns.
    """
    require_location(location)
    if is_url(location):
        files = find_objects(location, suffix=".parquet")
    else:
        try:
            files = _find_local(location)
        except OSError as error:
            raise InputError.no_access(location, error.strerror) from error
    if not files:
        raise InputError.no_such_file(location, _other_tables(location))
    return files


def _find_local(location: str) -> list[str]:
    path = Path(location)
    if path.is_dir():
        return [str(file) for file in _inside(path)]
    if path.is_file():
        return [str(path)]
    found: dict[Path, None] = {}
    for name in sorted(Path(name) for name in glob.glob(location, recursive=True)):
        found |= dict.fromkeys(_inside(name) if name.is_dir() else [name])
    for file in found:
        require_regular(file)
    return [str(file) for file in found]


def _inside(folder: Path) -> list[Path]:
    """Parquet files below a folder; a folder may be called ``x.parquet`` too, it is no file."""
    found = sorted(p for p in folder.rglob("*.parquet") if not p.name.startswith((".", "_")))
    files = [path for path in found if not path.is_dir()]
    for file in files:
        require_regular(file)
    return files


def _other_tables(location: str) -> list[str]:
    """Names of tables of other formats in a folder."""
    if is_url(location) or not Path(location).is_dir():
        return []
    return sorted(path.name for path in Path(location).iterdir() if convertible(path.name))


def open_parquet(file: Path | str) -> pq.ParquetFile:
    """Open a file or object, a local one memory-mapped, or say why it cannot be read."""
    try:
        if is_url(file):
            opened = _open_object(file)
            return pq.ParquetFile(opened, pre_buffer=True, page_checksum_verification=True)
        require_regular(file)
        return pq.ParquetFile(file, memory_map=True, page_checksum_verification=True)
    except FileNotFoundError as error:
        raise InputError.no_such_file(file) from error
    except (pa.ArrowException, OSError) as error:
        other = other_format(file)
        if other is not None:
            raise InputError.not_parquet(file, other.name, other.advice(str(file))) from error
        raise read_error(file, error) from error


def _open_object(file: Path | str) -> pa.NativeFile:
    url = ObjectUrl.parse(str(file))
    return url.filesystem.open_input_file(url.path)


def column_chunks(file: Path | str, metadata: pq.FileMetaData) -> Iterator[pq.ColumnChunkMetaData]:
    """What the footer says of every column in every row group."""
    _require_plain_columns(file, metadata)
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            yield metadata.row_group(group).column(column)


def _require_plain_columns(file: Path | str, metadata: pq.FileMetaData) -> None:
    """Refuse encrypted columns: to ask Arrow for what the footer says of one ends the process."""
    if metadata.num_row_groups == 0:
        return
    source = _open_object(file) if is_url(file) else file
    # the first pages alone: a buffer keeps the reader from bringing all of a column
    with pq.ParquetFile(source, metadata=metadata, buffer_size=PROBE_BYTES) as probe:
        try:
            next(probe.iter_batches(1, row_groups=[0], use_threads=False), None)
        except (pa.ArrowException, OSError) as error:
            if "decrypt" in str(error).lower():
                raise InputError.not_parquet(
                    file, "one with encrypted columns", "write it again without encryption"
                ) from error
            # a damaged page is told when it is read, if anybody reads it


def read_error(file: Path | str, error: Exception) -> InputError | StorageError:
    """A damaged file, or a store that did not answer: the second is worth another try."""
    if is_url(file) and not isinstance(error, pa.ArrowInvalid):
        return StorageError.of("read", file, error)
    return InputError.unreadable(file, error)


def list_row_groups(files: Iterable[Path | str], columns: Sequence[str]) -> list[RowGroup]:
    """The non-empty row groups of files that all have ``columns``."""
    groups = []
    for file in files:
        parquet = open_parquet(file)
        require_columns(file, parquet.schema_arrow.names, columns)
        for index in range(parquet.num_row_groups):
            rows = parquet.metadata.row_group(index).num_rows
            if rows:
                groups.append(RowGroup(absolute(file), index, rows))
    return groups


def require_columns(file: Path | str, names: Sequence[str], columns: Sequence[str]) -> None:
    """Refuse a file that has not every one of ``columns``, or has one twice."""
    for column in columns:
        if column not in names:
            raise InputError.missing_column(file, column, names)
        if names.count(column) > 1:
            raise InputError.repeated_column(file, column, names.count(column))


def find_id_type(columns: Iterable[tuple[Path | str, Sequence[str]]]) -> pa.DataType:
    """The one kind of id in all columns, given as (file, column names); mixtures are refused."""
    return common_id_type(
        (str(file), name, open_parquet(file).schema_arrow.field(name).type)
        for file, names in columns
        for name in names
    )


def read_row_group(group: RowGroup, columns: Sequence[str] | None = None) -> pa.Table:
    """Read one row group; damaged pages are reported with the file's name."""
    parquet = open_parquet(group.file)
    try:
        return parquet.read_row_group(group.index, columns=columns, use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise read_error(group.file, error) from error


def require_no_nulls(table: pa.Table, group: RowGroup, columns: Sequence[str]) -> None:
    """Refuse a table with nulls in ``columns``, naming the first."""
    for column in columns:
        values = table[column]
        if values.null_count:
            row = pc.index(values.is_null(), True).as_py()
            raise InputError.null_value(
                group.file, column, row_group=group.index, row=row, count=values.null_count
            )
