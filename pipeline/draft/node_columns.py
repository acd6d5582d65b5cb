"""Ids and features of a node table, and the kind of node that it describes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from peg_core.errors import InputError
from peg_core.graph.ids.id_types import BINARY, TEXT, id_type
from pipeline.config.field_types import shorten
from pipeline.draft.column_names import LABELS, NODE_IDS, TIMES, bare_words, has_word, words_of
from pipeline.draft.edge_ends import Ends
from pipeline.draft.guess import Guess, listed
from pipeline.draft.sampled_table import SampledTable


@dataclass(frozen=True)
class NodeGuess:
    """What was found out about a node table.

    Args:
        end: Which end of a link it describes, where these are of two kinds.
        features: A column or a list of columns.
        standardise: Whether the features are plain numbers, of scales that differ.
    """

    table: SampledTable
    id: Guess
    end: str
    features: Guess
    standardise: bool


def describe_nodes(table: SampledTable, edges: SampledTable, ends: Ends) -> NodeGuess:
    """Find ids and features.

    Raises:
        InputError: No column can hold the ids of the edges.
    """
    column, end, why = _find_id(table, edges, ends)
    features, standardise = _find_features(table, column, ends)
    return NodeGuess(table, Guess("node_id", column, why), end, features, standardise)


def _find_id(table: SampledTable, edges: SampledTable, ends: Ends) -> tuple[str, str, str]:
    """The id column, the end whose ids it holds, and by what it was chosen.

    Ids that the edges use count most, then the name; every id may stand there once.
    """
    found: list[tuple[tuple[float, ...], str, str, str]] = []
    for name in table.id_columns:
        ids = table.rows[name]
        if ids.n_unique() < len(ids):
            continue
        for end in ends.columns:
            if not _alike(table.type_of(name), edges.type_of(end)):
                continue
            known, share = _known(ids, edges.rows[end])
            named = bare_words(name) == bare_words(end)
            plain = "_".join(words_of(name)) in NODE_IDS
            rank = (named and known > 0, plain and known > 0, share, named, plain)
            why = f"{known:,} of its {len(ids):,} ids stand in {shorten(end)} too"
            found.append((tuple(map(float, rank)), name, end, why))
    if not found:
        types = ", ".join(f"{name!r} is {edges.type_of(name)}" for name in ends.columns)
        columns = ", ".join(f"{field.name!r} ({field.type})" for field in table.schema)
        raise InputError(
            f"{table.location} has no column with the ids of the edges ({types}), each of them "
            f"once; its columns are {columns}: give a table with a row for each node"
        )
    best = max(found, key=lambda each: each[0])  # the first of equals
    return best[1], best[2], best[3]


def _alike(first: pa.DataType, second: pa.DataType) -> bool:
    """Whether both hold text, or both numbers."""
    return (id_type(first) in (TEXT, BINARY)) == (id_type(second) in (TEXT, BINARY))


def _known(ids: pl.Series, others: pl.Series) -> tuple[int, float]:
    """How many of the ids are among others, and their share."""
    if ids.dtype != others.dtype:
        kind = pl.String if ids.dtype in (pl.String, pl.Categorical) else pl.Int64
        ids, others = (column.cast(kind, strict=False) for column in (ids, others))
    known = int(ids.is_in(others.drop_nulls().unique().implode()).sum())
    return known, known / max(1, len(ids))


def _find_features(table: SampledTable, column: str, ends: Ends) -> tuple[Guess, bool]:
    """Lists of numbers, else plain numbers; whether the latter."""
    lists, refused = _lists(table)
    if lists:
        value = lists[0] if len(lists) == 1 else lists
        return Guess("features", value, f"{table.type_of(lists[0])}"), False
    numbers = []
    for name in table.rows.columns:
        kind = table.type_of(name)
        is_number = (
            pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
        )
        if name == column or name in ends.columns or not is_number:
            continue
        if has_word(name, LABELS) or has_word(name, TIMES) or _is_id(table, name):
            continue
        fault = _fault(table.rows[name])
        if fault:
            refused.append(f"{shorten(name)} has {fault}")
        else:
            numbers.append(name)
    left_out = f"; left out: {', '.join(refused[:3])}" if refused else ""
    if not numbers:
        return Guess("features", None, f"no column of numbers{left_out}"), False
    why = f"plain numbers without gaps{left_out}"
    return Guess("features", numbers if len(numbers) > 1 else numbers[0], why), True


def _lists(table: SampledTable) -> tuple[list[str], list[str]]:
    """Columns with lists of numbers, and why others are not used."""
    used, refused = [], []
    for name in table.lists.columns:
        kind = table.type_of(name)
        inner = getattr(kind, "value_type", None)
        if inner is None or not (pa.types.is_floating(inner) or pa.types.is_integer(inner)):
            continue
        values = table.lists[name]
        values = values.arr.to_list() if isinstance(values.dtype, pl.Array) else values
        lengths = values.list.len()
        if pa.types.is_floating(inner) and (values.null_count() or lengths.n_unique() > 1):
            refused.append(f"{shorten(name)} has lists of several lengths")
        elif lengths.max():
            used.append(name)
    return used, refused


def _is_id(table: SampledTable, name: str) -> bool:
    """Whether numbers name something: each stands there once, and the name says id."""
    words = words_of(name)
    return bool(words) and words[-1] in ("id", "key", "uid", "code") and len(table.rows) > 1


def _fault(values: pl.Series) -> str:
    """Why numbers cannot be features."""
    if values.null_count():
        return f"{values.null_count():,} null(s)"
    if values.dtype.is_float() and not values.is_finite().all():
        return "values that are not finite"
    return "one value only" if values.n_unique() < 2 else ""


def unused_columns(table: SampledTable, used: Sequence[str | None]) -> str:
    """The columns that no key names, in words."""
    names = [name for name in table.schema.names if name not in used]
    return f"not used: {listed(names)}" if names else ""
