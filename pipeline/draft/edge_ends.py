"""Which two columns of a table are the ends of its links, and what kind of link that is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

import polars as pl
import pyarrow as pa

from peg_core.errors import InputError
from peg_core.graph.edge_rows import EdgeColumns
from peg_core.graph.edge_sides import Sides, compare_sides, lie_apart, look_bipartite
from peg_core.graph.ids.id_types import BINARY, TEXT, common_id_type, id_type
from pipeline.config.field_types import shorten
from pipeline.draft.column_names import (
    DIRECTED_ENDS,
    ENDS,
    KINDS,
    TIMES,
    WEIGHTS,
    has_word,
    pair_words,
)
from pipeline.draft.guess import Guess, listed
from pipeline.draft.sampled_table import SampledTable

# Share of the links that are also listed the other way round from which on none has a direction.
MOST_REVERSED = 0.5
# Share of the smaller column's texts that stand in both: the columns name the same things.
SAME_TEXTS = 0.2


@dataclass(frozen=True)
class Ends:
    """Two columns, and what their names say of them.

    Args:
        names_say: ``plain``, ``directed`` or ``bipartite``; None: nothing.
        reason: What they were chosen by.
    """

    source: str
    target: str
    names_say: str | None
    reason: str

    @property
    def columns(self) -> tuple[str, str]:
        return self.source, self.target


def find_ends(table: SampledTable, given: tuple[str | None, str | None] = (None, None)) -> Ends:
    """The two ends of a link: columns that were given, else by their names, else the only two.

    Raises:
        InputError: No two columns can be the ends, or several might be.
    """
    able = _able(table, given)
    known = (
        (said, pair)
        for said, pairs in (("directed", DIRECTED_ENDS), ("bipartite", KINDS), ("plain", ENDS))
        for pair in pairs
    )
    by_words = {pair_words(*two): two for two in reversed(list(_orders(able, given)))}
    for said, pair in known:
        if pair in by_words:
            source, target = by_words[pair]
            return Ends(source, target, said, f"the names {shorten(source)} and {shorten(target)}")
    if None not in given:
        source, target = able
        return Ends(source, target, None, "given on the command line")
    likely = [name for name in able if not has_word(name, TIMES | WEIGHTS)] or able
    for names, why in ((likely, "no other column looks like ids"), (able, "no other can hold ids")):
        pairs = list(_orders(names, given))
        if given == (None, None):  # as in the table: the first is the source
            pairs = [two for two in pairs if able.index(two[0]) < able.index(two[1])]
        if len(pairs) == 1:
            return Ends(*pairs[0], None, why)
    raise _no_ends(table, able)


def _able(table: SampledTable, given: tuple[str | None, str | None]) -> list[str]:
    """Columns that may be an end: those given, or all that can hold ids."""
    for name in given:
        if name is not None and name not in table.schema.names:
            raise InputError.missing_column(table.groups[0].file, name, table.schema.names)
        if name is not None and name not in table.id_columns:
            raise InputError.wrong_type(
                table.groups[0].file,
                name,
                found=table.type_of(name),
                needed="an integer or string id",
            )
    if given[0] is not None and given[0] == given[1]:
        raise InputError(
            f"{shorten(given[0])} is given for both ends of a link, needed are two columns; name "
            "another one with --source or --target"
        )
    chosen = [name for name in given if name is not None]
    return chosen if len(chosen) == 2 else table.id_columns


def _orders(names: list[str], given: tuple[str | None, str | None]) -> Iterator[tuple[str, str]]:
    """Pairs of columns that are as given where they are."""
    for two in permutations(names, 2):
        if all(want in (None, name) for name, want in zip(two, given, strict=True)):
            yield two


def _no_ends(table: SampledTable, able: list[str]) -> InputError:
    columns = [f"{field.name!r} ({field.type})" for field in table.schema]
    if len(able) < 2:
        return InputError(
            f"{table.location} has {len(able)} column(s) that can hold ids, needed are two, of "
            f"integers or strings, for the ends of a link; its columns are {', '.join(columns)}: "
            "cast the columns with the ids, or write them into the table"
        )
    return InputError(
        f"{table.location} has {len(able)} columns that can hold ids ({listed(able)}), and no two "
        "have names that are known as the ends of a link; name them: --source COLUMN --target "
        "COLUMN"
    )


def find_kind(table: SampledTable, ends: Ends) -> Guess:
    """``bipartite`` or ``directed``, where the graph is one, from names and from ids."""
    types = [table.type_of(column) for column in ends.columns]
    if _of_two_types(types):
        words = [_told(kind) for kind in types]
        why = f"{shorten(ends.source)} holds {words[0]}, {shorten(ends.target)} {words[1]}"
        return Guess("bipartite", True, why)
    sides = compare_sides(
        table.groups,
        EdgeColumns(*ends.columns),
        common_id_type(
            (table.location, name, kind) for name, kind in zip(ends.columns, types, strict=True)
        ),
    )
    names = f"the names {shorten(ends.source)} and {shorten(ends.target)}"
    if ends.names_say == "bipartite":
        if id_type(types[0]) in (TEXT, BINARY) and _share(sides) > SAME_TEXTS:
            why = f"{sides['both']:,} ids stand in both columns, so they name one kind of node"
            return Guess("plain", False, why)
        return Guess("bipartite", True, f"{names} are two kinds of thing")
    if look_bipartite(sides):
        return Guess("bipartite", True, _apart(sides))
    if ends.names_say == "directed":
        both = _reversed_share(table, ends)
        if both < MOST_REVERSED:
            return Guess("directed", True, f"{names} are two different roles")
        return Guess("plain", False, f"{both:.0%} of the rows looked at stand there in both orders")
    if lie_apart(sides):
        why = f"{sides['outside']:,} numbers of one column lie beyond all of the other"
        return Guess("bipartite", True, why)
    if ends.names_say is None and not sides["both"]:
        return Guess("bipartite", True, f"{_apart(sides)}, and their names differ")
    if sides["both"]:
        why = f"{sides['both']:,} ids stand in both columns, so they hold one kind"
    else:
        why = f"{names} are ends of links within one kind"
    return Guess("plain", False, why)


def _told(kind: pa.DataType) -> str:
    return "text" if id_type(kind) in (TEXT, BINARY) else "numbers"


def _of_two_types(types: list[pa.DataType]) -> bool:
    """Whether one column holds text and the other numbers; widths of integers go together."""
    return _told(types[0]) != _told(types[1])


def _share(sides: Sides) -> float:
    """Of the smaller column's nodes, those that stand in both."""
    return sides["both"] / max(1, min(sides["sources"], sides["targets"]))


def _apart(sides: Sides) -> str:
    both = f"only {sides['both']:,} ids stand" if sides["both"] else "no id stands"
    return (
        f"{both} in both columns ({sides['sources']:,} and {sides['targets']:,} in "
        f"{sides['rows']:,} rows)"
    )


def _reversed_share(table: SampledTable, ends: Ends) -> float:
    """Of the sampled links, those that are listed the other way round too."""
    links = table.rows.select(
        pl.col(ends.source).alias("source"), pl.col(ends.target).alias("target")
    ).unique()
    turned = links.select(pl.col("target").alias("source"), pl.col("source").alias("target"))
    return len(links.join(turned, on=["source", "target"])) / max(1, len(links))
