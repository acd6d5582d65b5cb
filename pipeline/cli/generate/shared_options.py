"""Options that several generators of graphs have."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from pipeline.generate.generated_files import GeneratedFile, write_files

Command = Callable[..., None]


@dataclass(frozen=True)
class Target:
    """Where the edges go, and the seed of everything."""

    out: Path
    overwrite: bool
    seed: int


def writes_to(columns: str) -> Callable[[Command], Command]:
    """Give a command the options of a target, handed over together as ``target``."""
    options = (
        click.option("--out", type=click.Path(path_type=Path), required=True,
                     help=f"Parquet file for the edges: columns {columns}."),
        click.option("--overwrite", is_flag=True, help="Replace files that exist."),
        click.option("--seed", type=int, default=0, show_default=True,
                     help="Same seed, same files."),
    )  # fmt: skip

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def collected(*, out: Path, overwrite: bool, seed: int, **values: Any) -> None:
            command(**values, target=Target(out, overwrite, seed))

        for option in reversed(options):
            collected = option(collected)
        return collected

    return decorate


def path_option(name: str, columns: str) -> Callable[[Command], Command]:
    """An optional file beside the edges."""
    return click.option(
        name, type=click.Path(path_type=Path), help=f"Parquet file: columns {columns}."
    )


def rows_option(name: str, text: str) -> Callable[[Command], Command]:
    """How many rows an optional file gets."""
    return click.option(name, type=int, metavar="ROWS", help=text)


def write_and_tell(files: Sequence[GeneratedFile], *, overwrite: bool) -> None:
    """Write the files, and say how much was written where."""
    write_files(files, overwrite=overwrite)
    for file in files:
        click.echo(f"wrote {file.rows:,} {file.what} to {file.path}")
