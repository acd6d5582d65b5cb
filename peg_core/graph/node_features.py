"""Features of nodes, from a Parquet node table to a memory-mapped array in index order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from peg_core.atomic_file import atomic_path
from peg_core.errors import InputError
from peg_core.graph.edge_table import RowGroup, read_row_group
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.id_types import normalise_ids
from peg_core.graph.node_ids import NodeIds


def write_features(
    groups: Sequence[RowGroup], *, id_column: str, column: str, node_ids: NodeIds, out: Path
) -> dict[str, int]:
    """Write ``features.npy`` [num_nodes, width] float32; nodes without a row get zeros.

    A list of floats per node is a dense row; a list of integers holds the
    indices of the binary features that are 1.
    """
    width = _width(groups, column)
    seen = np.zeros(len(node_ids), dtype=bool)
    with atomic_path(out) as temporary:
        shape = (len(node_ids), width)
        features = np.lib.format.open_memmap(temporary, "w+", dtype=np.float32, shape=shape)
        for group in groups:
            table = read_row_group(group, [id_column, column])
            index = node_ids.lookup(normalise_ids(table[id_column]))
            features[index] = _dense_rows(table[column].combine_chunks(), width, group, column)
            seen[index] = True
        features.flush()
    return {"feature_width": width, "nodes_without_features": int((~seen).sum())}


def load_features(folder: Path) -> npt.NDArray[np.float32] | None:
    """The features of a graph, memory-mapped, or None where it has none."""
    file = folder / "features.npy"
    return np.load(file, mmap_mode="r") if file.exists() else None


def input_features(
    graph: GraphStore, features: npt.NDArray[np.float32] | None, start: int, stop: int
) -> npt.NDArray[np.float32]:
    """What a model reads for the nodes ``start .. stop``: features, or else their degree."""
    if features is not None:
        return np.array(features[start:stop], dtype=np.float32)
    degrees = np.diff(graph.indptr[start : stop + 1])
    return np.stack([np.log1p(degrees), np.ones(stop - start)], axis=1).astype(np.float32)


def _width(groups: Sequence[RowGroup], column: str) -> int:
    widths = set()
    for group in groups:
        values = read_row_group(group, [column])[column].combine_chunks()
        _require_list(values.type, group, column)
        if pa.types.is_integer(values.type.value_type):
            widths.add((pc.max(values.flatten()).as_py() or 0) + 1)
        else:
            lengths = pc.list_value_length(values)
            low, high = pc.min(lengths).as_py(), pc.max(lengths).as_py()
            if low != high or (widths and widths != {low}):
                raise InputError(
                    f"column {column!r} of {group.file} has rows of {low} to {high} numbers "
                    f"(before: {sorted(widths)}), one length is needed; pad the shorter rows"
                )
            widths.add(low)
    return max(widths)


def _require_list(kind: pa.DataType, group: RowGroup, column: str) -> None:
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    is_list = is_list or pa.types.is_fixed_size_list(kind)
    number = is_list and (
        pa.types.is_integer(kind.value_type) or pa.types.is_floating(kind.value_type)
    )
    if not number:
        raise InputError.wrong_type(group.file, column, found=kind, needed="a list of numbers")


def _dense_rows(
    values: pa.Array, width: int, group: RowGroup, column: str
) -> npt.NDArray[np.float32]:
    flat: npt.NDArray[Any] = np.asarray(values.flatten())
    if pa.types.is_integer(values.type.value_type):
        lengths = np.asarray(pc.fill_null(pc.list_value_length(values), 0))
        rows = np.zeros((len(values), width), dtype=np.float32)
        rows[np.repeat(np.arange(len(values)), lengths), flat] = 1.0
        return rows
    if values.null_count:
        row = pc.index(values.is_null(), True).as_py()
        raise InputError.null_value(
            group.file, column, row_group=group.index, row=row, count=values.null_count
        )
    rows = flat.reshape(len(values), width).astype(np.float32)
    bad = ~np.isfinite(rows).all(axis=1)
    if bad.any():
        raise InputError(
            f"column {column!r} of {group.file} holds NaN or infinity in row {int(bad.argmax()):,} "
            f"of row group {group.index}; features must be finite: mend {int(bad.sum()):,} row(s)"
        )
    return rows
