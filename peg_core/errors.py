"""Errors a user can act on: what was found, what was needed, what to do.

Every error takes one message, so that it survives the pickling between Ray
processes; named constructors build the messages.
"""

from __future__ import annotations

import difflib
import errno
import re
from collections.abc import Iterable, Sequence
from typing import Self

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
# numpy tells how much it wrote, libraries in Rust repeat the system's words in their own errors
NO_ROOM_TEXT = re.compile(
    r"no space left|quota exceeded|\d+ requested and \d+ written", re.IGNORECASE
)


class PegError(Exception):
    """Base of all errors that are shown without a traceback."""

    exit_code = 1


class ConfigError(PegError):
    """The configuration or the command line is wrong; nothing was started."""

    exit_code = 2


class InputError(PegError):
    """An input file does not hold what it should."""

    @classmethod
    def no_such_file(cls, location: object, others: Sequence[str] = ()) -> Self:
        message = f"no Parquet file at {location}; check the path, folder or glob"
        if others:
            more = f" and {len(others) - 1:,} more" if len(others) > 1 else ""
            message += f"; it holds {others[0]!r}{more}: only *.parquet is read there, convert it"
        return cls(message)

    @classmethod
    def no_access(cls, location: object, reason: object) -> Self:
        return cls(f"{location} cannot be looked into ({reason}); check the path and who may read")

    @classmethod
    def not_a_file(cls, file: object, kind: str) -> Self:
        return cls(
            f"{file} is {kind}, needed is a Parquet file: it is read several times, from any "
            "place; write the table to a file, and give that"
        )

    @classmethod
    def not_parquet(cls, file: object, found: str, advice: str) -> Self:
        return cls(f"{file} is not a readable Parquet file, but {found}; {advice}")

    @classmethod
    def repeated_column(cls, file: object, column: str, count: int) -> Self:
        return cls(
            f"{file} has {count} columns named {column!r}, one is needed; rename or drop the others"
        )

    @classmethod
    def empty_graph(cls, files: str, reason: str) -> Self:
        return cls(
            f"{files} holds no edge that can be used: {reason}; a graph needs at least one edge "
            "between two nodes: check the columns in `graph`, and how the file was written"
        )

    @classmethod
    def unreadable(cls, file: object, reason: object) -> Self:
        return cls(
            f"{file} is not a readable Parquet file ({reason}); "
            "it may be truncated or still being written: write it again"
        )

    @classmethod
    def missing_column(cls, file: object, column: str, found: Iterable[str]) -> Self:
        found = list(found)
        return cls(
            f"{file} has no column {column!r}; it has {', '.join(map(repr, found)) or 'none'}"
            f"{nearest_hint(column, found)}"
        )

    @classmethod
    def wrong_type(cls, file: object, column: str, *, found: object, needed: str) -> Self:
        return cls(
            f"column {column!r} of {file} is of type {found}, needed is {needed}; "
            "cast the column, or name another one in the configuration"
        )

    @classmethod
    def null_value(cls, file: object, column: str, *, row_group: int, row: int, count: int) -> Self:
        return cls(
            f"column {column!r} of {file} holds {count:,} null(s), the first in row {row:,} "
            f"of row group {row_group}; remove those rows, or fill in the value"
        )

    @classmethod
    def no_rows(cls, location: object, what: str) -> Self:
        return cls(f"{location} holds no {what}; at least one is needed: check how it was written")


class GraphTooSmall(PegError):
    """The graph has too few nodes or edges for what was asked."""

    @classmethod
    def for_encoding(cls, *, needed: int, found: int) -> Self:
        return cls(
            f"encoding needs at least {needed:,} nodes, the graph has {found:,}; "
            "lower `dimensions`, or check that ingestion kept the edges"
        )

    @classmethod
    def for_split(cls, *, part: str, ratio: float, edges: int) -> Self:
        return cls(
            f"a {part} share of {ratio} of {edges:,} edges leaves no edge in it; "
            f"raise `split.{part}`, or give a larger graph"
        )

    @classmethod
    def for_connected(cls, *, needed: int, spare: int, edges: int) -> Self:
        return cls(
            f"{needed:,} of {edges:,} edges are to be held out, {spare:,} can be without taking "
            "the last edge of a node; lower `split.valid` or `split.test`, or leave out "
            "`split.keep_connected`"
        )

    @classmethod
    def for_training(cls, *, left: int, needed: int, edges: int) -> Self:
        return cls(
            f"the split leaves {left:,} of {edges:,} edges to learn from, at least {needed} are "
            "needed; hold out less (`split.valid` and `split.test`, or the links in "
            "`split.valid_edges` and `split.test_edges`), or give a larger graph"
        )

    @classmethod
    def for_negatives(cls, *, asked: int, available: int) -> Self:
        return cls(
            f"{asked:,} negative pairs were asked for, the graph has only {available:,} pairs "
            "without an edge; lower the shares of the split, or give a sparser graph"
        )


class LeakFound(PegError):
    """A held-out link reached something the model learns from."""

    @classmethod
    def of(cls, *, part: str, found_in: str, count: int) -> Self:
        return cls(
            f"{count:,} {part} link(s) stand in {found_in}, none may; "
            "the split artifact is not trustworthy: run again with `--force split`"
        )

    @classmethod
    def in_both(cls, *, count: int, valid: str, test: str) -> Self:
        return cls(
            f"{count:,} link(s) stand in both {valid} and {test}, none may: links that choose the "
            "model must not test it; take them out of `split.valid_edges` or `split.test_edges`"
        )


class ArtifactMismatch(PegError):
    """Two artifacts that do not belong together."""

    @classmethod
    def of(cls, *, what: str, found: object, needed: object) -> Self:
        return cls(
            f"{what} do not fit together: found {found}, needed {needed}; "
            "use artifacts of one run, or run the stage again"
        )


class DiskFull(PegError):
    """No room for a file."""

    @classmethod
    def to_be(
        cls, folder: object, *, free: int, needed: int, largest: str, remedy: str | None
    ) -> Self:
        smaller = f"; for less of stage {largest}, the largest, {remedy}" if remedy else ""
        return cls(
            f"{folder} has {free / 1e9:,.1f} GB free, this run will write about "
            f"{needed / 1e9:,.1f} GB there; free some space, for example with `peg gc`, or set "
            f"`store` to a larger disk{smaller}; `peg run --anyway` starts it all the same"
        )

    @classmethod
    def of(cls, path: object, *, size: int, reason: object) -> Self:
        return cls(
            f"cannot set aside {size / 1e6:,.1f} MB for {path}: {reason}; free some space, for "
            "example with `peg gc`, or move `store`, then run again to go on"
        )

    @classmethod
    def during(cls, what: str, reason: object) -> Self:
        return cls(
            f"no room left on the disk for {what} ({reason}); free some space, for example with "
            "`peg gc`, or move `store`, then run again to go on"
        )


def is_disk_full(error: BaseException) -> bool:
    """Whether a library failed to write because nothing more fits."""
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        return True
    return NO_ROOM_TEXT.search(str(error)) is not None


def nearest_hint(word: str, known: Iterable[str]) -> str:
    """``"; did you mean 'x'?"`` when something known is close to ``word``, else an empty string."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""
