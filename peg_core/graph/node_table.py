"""A Parquet node table in index order, a batch of rows in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from peg_core.atomic_file import atomic_path
from peg_core.errors import InputError
from peg_core.graph.edge_table import RowGroup, open_parquet, read_error
from peg_core.graph.feature_columns import MAX_WIDTH, FeatureColumn, Rows, require_filled
from peg_core.graph.ids.node_ids import NodeIds
from peg_core.mapped_array import new_mapped_array

# Feature values in memory at a time; Parquet alone decides how large a row group is.
BATCH_VALUES = 2**22
ID_BATCH_ROWS = 2**20

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class NodeColumns:
    """What the columns of a node table are called.

    Args:
        id: Ids of the nodes.
        features: Columns whose values stand side by side in a row of features.
        feature_width: Number of binary features where the column holds their
            indices; None: as many as the largest index asks for.
        label: Class of a node.
        split: Part that a node belongs to.
    """

    id: str = "id"
    features: Sequence[str] = ()
    feature_width: int | None = None
    label: str | None = None
    split: str | None = None

    @property
    def names(self) -> list[str]:
        """Every column that is read, once."""
        optional = [name for name in (self.label, self.split) if name]
        return list(dict.fromkeys([self.id, *self.features, *optional]))


@dataclass(frozen=True)
class KindTable:
    """The node table of one kind of node.

    Args:
        groups: Its row groups; none where there is no table.
        columns: What they hold.
        ids: Of the nodes of the kind, in the order of the nodes.
        first: The number of the first of these nodes.
    """

    groups: Sequence[RowGroup]
    columns: NodeColumns
    ids: NodeIds
    first: int = 0


def write_node_tables(tables: Sequence[KindTable], folder: Path) -> dict[str, int]:
    """Write what the tables of all kinds say of the nodes into the folder of their graph.

    ``features.npy`` [num_nodes, width] float32, zeros for nodes without a row; the features of
    different kinds stand in columns of their own. ``node_table.parquet`` with the columns
    ``label`` and ``split``, one row per node in index order, null for nodes without a row; each
    where a table has it.

    Returns:
        Counts for the manifest.
    """
    num_nodes = sum(len(table.ids) for table in tables)
    rows = [locate_rows(table.groups, table.columns.id, table.ids) for table in tables]
    counts = {"nodes_without_row": num_nodes - sum(len(index) for index in rows)}
    if any(table.columns.features for table in tables):
        index = [own + table.first for own, table in zip(rows, tables, strict=True)]
        counts |= _write_features(tables, index, num_nodes, folder / "features.npy")
    values = {
        name: column
        for name in ("label", "split")
        if (column := _of_all_kinds(tables, rows, name)) is not None
    }
    if values:
        with atomic_path(folder / "node_table.parquet") as temporary:
            pq.write_table(pa.table(values), temporary, compression="zstd")
    if "label" in values:
        counts["labelled_nodes"] = num_nodes - values["label"].null_count
    return counts


def read_labels(folder: Path, nodes: IntArray) -> list[str | None] | None:
    """The class of some nodes of a graph's folder, in words; None: no table has classes."""
    file = folder / "node_table.parquet"
    if not file.exists() or "label" not in pq.read_schema(file).names:
        return None
    labels = pq.read_table(file, columns=["label"])["label"].take(pa.array(nodes))
    return [None if label is None else str(label) for label in labels.to_pylist()]


def _of_all_kinds(
    tables: Sequence[KindTable], rows: Sequence[IntArray], name: str
) -> pa.ChunkedArray | None:
    """The labels or parts of all nodes, null where nobody says; None where no table has them."""
    found = []
    for table, index in zip(tables, rows, strict=True):
        column = getattr(table.columns, name)
        found.append(
            _in_index_order(table.groups, column, index, len(table.ids)) if column else None
        )
    types = list(dict.fromkeys(part.type for part in found if part is not None))
    if not types:
        return None
    if len(types) > 1:
        files = [table.groups[0].file for table in tables if getattr(table.columns, name)]
        needed = f"{types[0]} as in {files[0]}"
        raise InputError.wrong_type(files[-1], name, found=types[1], needed=needed)
    parts = [
        pa.nulls(len(table.ids), types[0]) if part is None else part.combine_chunks()
        for part, table in zip(found, tables, strict=True)
    ]
    return pa.chunked_array(parts)


def locate_rows(groups: Sequence[RowGroup], id_column: str, node_ids: NodeIds) -> IntArray:
    """The node of every row of the table, [num_rows]; a node that has two rows is refused."""
    found = [np.zeros(0, dtype=np.int64)]
    for rows, batch in _batches(groups, [id_column], ID_BATCH_ROWS):
        require_filled(batch[id_column], rows, id_column)
        found.append(node_ids.lookup(batch[id_column]))
    index = np.concatenate(found)
    rows_per_node = np.bincount(index, minlength=len(node_ids))
    if len(index) and rows_per_node.max() > 1:
        node = int((rows_per_node > 1).argmax())
        group, row = _locate(groups, int(np.flatnonzero(index == node)[1]))
        name = node_ids.take(np.array([node]))[0]
        raise InputError(
            f"column {id_column!r} of {group.file} holds the id {name} a second time, in row "
            f"{row:,} of row group {group.index}; a node has one row: remove the others of "
            f"{int((rows_per_node > 1).sum()):,} such id(s)"
        )
    return index


def _write_features(
    tables: Sequence[KindTable], rows: Sequence[IntArray], num_nodes: int, out: Path
) -> dict[str, int]:
    """Write the features of all kinds side by side.

    Args:
        rows: The node of every row of each table.
    """
    parts = [
        [
            _feature_column(table.groups, name, table.columns.feature_width)
            for name in table.columns.features
        ]
        for table in tables
    ]
    widths = [sum(part.width for part in own) for own in parts]
    with atomic_path(out) as temporary:
        features = new_mapped_array(temporary, (num_nodes, sum(widths)), np.float32)
        left = 0
        for table, own, index, width in zip(tables, parts, rows, widths, strict=True):
            _fill_features(table, own, index, features[:, left : left + width])
            left += width
        features.flush()
    return {"feature_width": sum(widths)}


def _fill_features(
    table: KindTable, parts: Sequence[FeatureColumn], index: IntArray, out: npt.NDArray[Any]
) -> None:
    """Copy the features of one kind to the rows of its nodes, [num_nodes, width]."""
    first = 0
    if not parts:
        return
    batch_rows = max(1, BATCH_VALUES // out.shape[1])
    for rows, batch in _batches(table.groups, table.columns.features, batch_rows):
        blocks = [part.read(batch[part.name], rows) for part in parts]
        out[index[first : first + len(batch)]] = np.concatenate(blocks, axis=1)
        first += len(batch)


def _feature_column(
    groups: Sequence[RowGroup], name: str, feature_width: int | None
) -> FeatureColumn:
    """The column with its width: that of its first row or, for indices, the largest one's."""
    layout = FeatureColumn.layout_of(groups, name)
    if feature_width is not None and layout == "indices":
        return FeatureColumn(name, layout, feature_width)
    if layout == "number":
        return FeatureColumn(name, layout, 1)
    width = 1
    for rows, batch in _batches(groups, [name], ID_BATCH_ROWS if layout == "indices" else 1):
        if layout == "dense":
            require_filled(batch[name], rows, name)
            width = int(pc.list_value_length(batch[name])[0].as_py())
            rows.refuse(name, np.array([width == 0]), "an empty list", "give at least one number")
            break
        width = max(width, 1 + (pc.max(batch[name].flatten()).as_py() or 0))
        if width > MAX_WIDTH:
            _refuse_index(batch[name], rows, name)
    return FeatureColumn(name, layout, width).checked(feature_width)


def _refuse_index(values: pa.Array, rows: Rows, name: str) -> None:
    """Name the first row that holds an index beyond what a feature matrix can have."""
    lengths = np.asarray(pc.fill_null(pc.list_value_length(values), 0))
    flat = values.flatten()
    place = pc.index(pc.greater_equal(flat, MAX_WIDTH), True).as_py()
    row = np.repeat(np.arange(len(values)), lengths)[place]
    bad = np.arange(len(values)) == row
    index = flat[place].as_py()
    fault = f"the feature index {index:,}, at most {MAX_WIDTH - 1:,} is possible"
    advice = (
        "number the features 0, 1, 2, ... without gaps; with `graph.feature_width` every index "
        "beyond it is refused"
    )
    rows.refuse(name, bad, fault, advice)


def _in_index_order(
    groups: Sequence[RowGroup], column: str, index: IntArray, num_nodes: int
) -> pa.ChunkedArray:
    """Values of a column for every node, [num_nodes], null where the node has no row."""
    pieces = [
        _plain(batch[column], rows, column)
        for rows, batch in _batches(groups, [column], ID_BATCH_ROWS)
    ]
    kinds = list(dict.fromkeys(piece.type for piece in pieces))
    if len(kinds) > 1:
        raise InputError.wrong_type(
            groups[-1].file, column, found=kinds[1], needed=f"{kinds[0]} as in {groups[0].file}"
        )
    row = np.full(num_nodes, -1, dtype=np.int64)
    row[index] = np.arange(len(index))
    return pa.chunked_array(pieces).take(pa.array(row, mask=row < 0))


def _plain(values: pa.Array, rows: Rows, column: str) -> pa.Array:
    """Numbers with 64 bits, texts as large strings, whatever width or dictionary the file had."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_boolean(values.type):
        return values
    if pa.types.is_integer(values.type):
        return values.cast(pa.int64())
    if pa.types.is_floating(values.type):
        return values.cast(pa.float64())
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        return values.cast(pa.large_string())
    needed = "a number, a boolean or a string"
    raise InputError.wrong_type(rows.group.file, column, found=values.type, needed=needed)


def _batches(
    groups: Sequence[RowGroup], columns: Sequence[str], rows: int
) -> Iterator[tuple[Rows, dict[str, Any]]]:
    """The table in its order, at most ``rows`` rows at a time, and where they stand."""
    for group in groups:
        parquet = open_parquet(group.file)
        first = 0
        try:
            for batch in parquet.iter_batches(
                rows, row_groups=[group.index], columns=list(columns), use_threads=False
            ):
                yield Rows(group, first), batch
                first += len(batch)
        except (pa.ArrowException, OSError) as error:
            raise read_error(group.file, error) from error


def _locate(groups: Sequence[RowGroup], row: int) -> tuple[RowGroup, int]:
    """Row group of a row of the table, and its number there."""
    starts = np.cumsum([0, *(group.rows for group in groups)])
    number = int(np.searchsorted(starts, row, side="right")) - 1
    return groups[number], row - int(starts[number])
