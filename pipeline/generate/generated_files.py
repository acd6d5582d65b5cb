"""Parquet files of generated graphs: written together, there whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from peg_core.atomic_file import atomic_path
from peg_core.errors import ConfigError, PegError

# Without a terminal, files of this size or more get a line per tenth written.
LARGE_FILE_ROWS = 20_000_000


@dataclass(frozen=True)
class GeneratedFile:
    """A Parquet file to write, and the batches that fill it."""

    path: Path
    rows: int
    what: str
    batches: Iterator[pa.RecordBatch]


def write_files(files: Sequence[GeneratedFile], *, overwrite: bool) -> None:
    """Write all files; when one fails, none is left behind."""
    check_paths([file.path for file in files], overwrite=overwrite)
    with ExitStack() as renamed_at_the_end:
        try:
            temporary = [renamed_at_the_end.enter_context(atomic_path(f.path)) for f in files]
        except OSError as error:
            raise PegError(
                f"cannot create {error.filename}: {error.strerror}; choose another folder"
            ) from error
        for file, path in zip(files, temporary, strict=True):
            try:
                write_batches(file, path)
            except OSError as error:
                raise PegError(
                    f"cannot write {file.path}: {error}; free some space, or choose another folder"
                ) from error


def check_paths(paths: Sequence[Path], *, overwrite: bool) -> None:
    """Raise a ConfigError when a file cannot or must not be written."""
    for path in paths:
        if [other.resolve() for other in paths].count(path.resolve()) > 1:
            raise ConfigError(f"{path} was given for two outputs; give each its own file")
        if path.is_dir():
            raise ConfigError(f"{path} is a folder; add a file name such as edges.parquet")
        if path.exists() and not overwrite:
            raise ConfigError(f"{path} already exists; choose another name, or add --overwrite")


def write_batches(file: GeneratedFile, path: Path) -> None:
    """Write the batches of ``file`` to ``path``; the next one is drawn meanwhile."""
    first = next(file.batches)
    with (
        open_writer(path, first.schema) as writer,
        ThreadPoolExecutor(max_workers=1) as thread,
        progress(file.what, file.rows) as advance,
    ):

        def write(batch: pa.RecordBatch) -> None:
            writer.write_batch(batch)
            advance(len(batch))

        written = thread.submit(write, first)
        for batch in file.batches:
            written.result()
            written = thread.submit(write, batch)
        written.result()


def open_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """A writer whose row groups are the batches.

    Integers are packed by their differences: beside plain encoding that halves the
    time, as zstd has less to read.
    """
    packed = [field.name for field in schema if pa.types.is_integer(field.type)]
    return pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=False,
        column_encoding=dict.fromkeys(packed, "DELTA_BINARY_PACKED"),
    )


@contextmanager
def progress(what: str, rows: int) -> Iterator[Callable[[int], None]]:
    """Show on stderr how far the rows are: a bar on a terminal, else lines for large files."""
    console = Console(stderr=True)
    if console.is_terminal:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
            task = bar.add_task(what, total=rows)
            yield lambda count: bar.advance(task, count)
        return
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        before, done = done, done + count
        if rows >= LARGE_FILE_ROWS and 10 * before // rows < 10 * done // rows:
            click.echo(f"{what}: {done:,} of {rows:,} written", err=True)

    yield advance
