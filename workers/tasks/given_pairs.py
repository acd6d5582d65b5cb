"""Links and non-links that a split is given in files, as tasks read them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from peg_core.errors import ArtifactMismatch, InputError
from peg_core.graph.edge_table import (
    RowGroup,
    find_parquet_files,
    list_row_groups,
    read_row_group,
    require_no_nulls,
)
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.graph_ids import GraphIds, KindIds
from peg_core.graph.ids.id_types import normalise_ids
from peg_core.splits.edge_split import mark_training
from peg_core.splits.entry_chunk import find_entries
from peg_core.splits.given_links import require_id_types

Pairs = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


def read_pairs(
    location: str, columns: tuple[str, str], ids: GraphIds, *, ordered: bool = False
) -> Pairs:
    """Pairs of a Parquet location as node indices, unknown ids refused.

    Args:
        location: A file, folder or glob.
        columns: Those of the two ends; each is looked up among the nodes of its kind.
        ids: Of the graph.
        ordered: Whether pairs stay as they are listed; else source < target.
    """
    return _read(location, columns, ids, (), ordered=ordered)[0]


def read_numbered_pairs(
    location: str, columns: tuple[str, str], ids: GraphIds, *, number: str, ordered: bool = False
) -> tuple[Pairs, npt.NDArray[np.int64]]:
    """Pairs as :func:`read_pairs` reads them, and what stands in a column of whole numbers."""
    pairs, numbers = _read(location, columns, ids, (number,), ordered=ordered)
    return pairs, numbers[0]


def _read(
    location: str,
    columns: tuple[str, str],
    ids: GraphIds,
    numbers: tuple[str, ...],
    *,
    ordered: bool,
) -> tuple[Pairs, list[npt.NDArray[np.int64]]]:
    """Pairs, and columns of whole numbers beside them."""
    files, names = find_parquet_files(location), (*columns, *numbers)
    groups = list_row_groups(files, names)
    if not groups:
        raise InputError.no_rows(location, "pairs")
    require_id_types(files, columns, ids)
    ends: list[list[npt.NDArray[np.int64]]] = [[], []]
    others: list[list[npt.NDArray[np.int64]]] = [[] for _ in numbers]
    for group in groups:
        table = read_row_group(group, names)
        require_no_nulls(table, group, names)
        for end, column, kind in zip(ends, columns, ids.ends, strict=True):
            index = kind.lookup(normalise_ids(table[column]))
            if (index < 0).any():
                raise _unknown_node(group, column, table[column], index, kind, ids)
            end.append(index)
        for other, column in zip(others, numbers, strict=True):
            other.append(_whole_numbers(table[column], group.file, column))
    first, second = (np.concatenate(end) for end in ends)
    if not ordered:
        first, second = np.minimum(first, second), np.maximum(first, second)
    return (first, second), [np.concatenate(other) for other in others]


def _whole_numbers(column: pa.ChunkedArray, file: str, name: str) -> npt.NDArray[np.int64]:
    if not pa.types.is_integer(column.type):
        raise InputError.wrong_type(file, name, found=column.type, needed="row numbers of links")
    numbers: npt.NDArray[np.int64] = column.to_numpy().astype(np.int64)
    return numbers


def _unknown_node(
    group: RowGroup,
    column: str,
    values: pa.ChunkedArray,
    index: npt.NDArray[np.int64],
    kind: KindIds,
    ids: GraphIds,
) -> InputError:
    """What is wrong with a column that names nodes which are not among those of its kind."""
    unknown = index < 0
    row, count = int(unknown.argmax()), int(unknown.sum())
    found = f"column {column!r} of {group.file} names the node {values[row]} in row {row:,} of row "
    found += f"group {group.index}"
    if kind.name is None:
        return InputError(f"{found}, the graph has no such node; remove {count:,} such row(s)")
    others = [
        other.name
        for other in ids.kinds
        if other.name != kind.name and _knows(other, values.slice(row, 1))
    ]
    if others:
        return InputError(
            f"{found}, which is of the kind {others[0]!r}; the column has to hold nodes "
            f"of the kind {kind.name!r}, {count:,} row(s) do not: exchange the columns, or remove "
            "such rows"
        )
    return InputError(
        f"{found}, the graph has no such node of the kind {kind.name!r}; "
        f"remove {count:,} such row(s)"
    )


def _knows(kind: KindIds, value: pa.ChunkedArray) -> bool:
    try:
        return bool((kind.lookup(normalise_ids(value)) >= 0).all())
    except ArtifactMismatch:  # numbers among texts
        return False


def mark_given_links(
    graph: GraphStore, given: Iterable[tuple[int, str, Pairs]], parts: npt.NDArray[np.uint8]
) -> None:
    """Write the part of every entry: that of the file which names its edge, else training.

    Where a pair has links in both directions they are in one part, if a file names one of them.

    Args:
        given: Part, location and pairs of every file.
        parts: [2 * num_edges].
    """
    mark_training(graph, parts)
    what = "edges" if graph.relations is None else f"links of {graph.relations.target.name!r}"
    for part, location, (source, target) in given:
        missing = int((~graph.contains_link(source, target)).sum())
        if missing:
            raise InputError(
                f"{missing:,} of {len(source):,} pairs in {location} are not {what} of the graph; "
                "`graph.edges` must hold the links of all parts"
            )
        for rows, columns in ((source, target), (target, source)):
            parts[find_entries(graph, rows, columns)] = part
