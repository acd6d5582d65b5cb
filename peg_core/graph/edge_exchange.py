"""From rows of ids to sorted ranges of the adjacency matrix, a bounded piece at a time.

Ingestion in four steps, each a pure function of files: collect the distinct ids
of some row groups; number them; send both directions of every edge to the node
range of its source; sort and deduplicate one range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from peg_core.atomic_file import atomic_path, write_array
from peg_core.errors import InputError
from peg_core.graph.edge_table import RowGroup, read_row_group, require_no_nulls
from peg_core.graph.graph_store import index_dtype
from peg_core.graph.node_ids import NodeIds

IntArray = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True)
class EdgeColumns:
    """What the columns of an edge list are called."""

    source: str
    target: str
    weight: str | None = None
    time: str | None = None

    @property
    def ends(self) -> list[str]:
        return [self.source, self.target]

    @property
    def names(self) -> list[str]:
        return [name for name in (self.source, self.target, self.weight, self.time) if name]


def normalise_ids(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Ids as int64 or as strings, whatever width or dictionary the file had."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(pa.int64() if pa.types.is_integer(column.type) else pa.large_string())


def collect_ids(groups: Sequence[RowGroup], columns: Sequence[str], out: Path) -> int:
    """Write the distinct ids of the row groups, sorted; returns the rows read."""
    found = []
    for group in groups:
        table = read_row_group(group, columns)
        require_no_nulls(table, group, columns)
        found += [normalise_ids(table[column]).unique() for column in columns]
    distinct = pl.Series("id", pa.chunked_array(found)).unique().sort()
    with atomic_path(out) as temporary:
        distinct.to_frame().write_parquet(temporary)
    return sum(group.rows for group in groups)


def merge_ids(parts: Sequence[Path], folder: Path) -> int:
    """Number the distinct ids of all parts in sorted order; returns how many there are."""
    ids = pl.scan_parquet(list(parts)).unique().sort("id").collect(engine="streaming")
    NodeIds(ids["id"].to_arrow()).save(folder)
    return len(ids)


def exchange_edges(
    groups: Sequence[RowGroup],
    columns: EdgeColumns,
    node_ids: NodeIds,
    cuts: IntArray,
    out: Path,
) -> dict[str, Any]:
    """Write both directions of the edges, grouped by the node range of their source.

    Args:
        cuts: Bounds of the node ranges, [num_ranges + 1].

    Returns:
        Offsets of the ranges in the written arrays, and counts of what was read.
    """
    pieces = [_read_edges(group, columns, node_ids) for group in groups]
    edges = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
    rows = len(edges["source"])
    loops = edges["source"] == edges["target"]
    edges = {name: values[~loops] for name, values in edges.items()}
    both = {
        "source": np.concatenate([edges["source"], edges["target"]]),
        "target": np.concatenate([edges["target"], edges["source"]]),
        **{
            name: np.concatenate([edges[name], edges[name]])
            for name in edges.keys() - {"source", "target"}
        },
    }
    owner = (np.searchsorted(cuts, both["source"], side="right") - 1).astype(np.uint16)
    order = np.argsort(owner, kind="stable")
    for name, values in both.items():
        write_array(out / f"{name}.npy", values[order])
    counts = np.bincount(owner, minlength=len(cuts) - 1)
    return {
        "offsets": [0, *np.cumsum(counts).tolist()],
        "rows": rows,
        "self_loops": int(loops.sum()),
    }


def _read_edges(
    group: RowGroup, columns: EdgeColumns, node_ids: NodeIds
) -> dict[str, npt.NDArray[Any]]:
    table = read_row_group(group, columns.names)
    require_no_nulls(table, group, columns.names)
    dtype = index_dtype(len(node_ids))
    edges: dict[str, npt.NDArray[Any]] = {
        "source": node_ids.lookup(normalise_ids(table[columns.source])).astype(dtype),
        "target": node_ids.lookup(normalise_ids(table[columns.target])).astype(dtype),
    }
    if columns.weight:
        edges["weight"] = _positive_weights(table[columns.weight], group, columns.weight)
    if columns.time:
        edges["time"] = _timestamps(table[columns.time], group, columns.time)
    return edges


def _positive_weights(
    column: pa.ChunkedArray, group: RowGroup, name: str
) -> npt.NDArray[np.float64]:
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        raise InputError.wrong_type(group.file, name, found=column.type, needed="a number")
    weights = np.asarray(column.cast(pa.float64()))
    bad = ~(np.isfinite(weights) & (weights > 0))
    if bad.any():
        row = int(bad.argmax())
        raise InputError(
            f"column {name!r} of {group.file} holds the weight {weights[row]} in row {row:,} of "
            f"row group {group.index}; weights must be finite and above 0: remove or mend "
            f"{int(bad.sum()):,} such row(s)"
        )
    return weights


def _timestamps(column: pa.ChunkedArray, group: RowGroup, name: str) -> npt.NDArray[np.int64]:
    kind = column.type
    if pa.types.is_date32(kind):
        column = column.cast(pa.date64())
    elif not (pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        raise InputError.wrong_type(group.file, name, found=kind, needed="an integer or timestamp")
    return np.asarray(column.cast(pa.int64()))


def build_range(
    parts: Sequence[tuple[Path, int, int]], start: int, stop: int, num_nodes: int, out: Path
) -> int:
    """Sort and deduplicate the rows ``start .. stop``; returns the entries kept.

    Weights of duplicates are summed, of their times the earliest is kept.

    Args:
        parts: (folder of an exchange, first, last) for the slices of this range.
        out: Folder for ``counts.npy`` [stop - start], ``indices.npy`` and, where the
            input has them, ``weights.npy`` and ``times.npy``.
    """
    source = _gather(parts, "source").astype(np.int64) - start
    keys = source * num_nodes + _gather(parts, "target")
    del source
    extras = {
        name: _gather(parts, name)
        for name in ("weight", "time")
        if parts and (parts[0][0] / f"{name}.npy").exists()
    }
    if extras:
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        extras = {name: values[order] for name, values in extras.items()}
    else:
        keys.sort()
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    distinct = keys[first]
    counts = np.bincount(distinct // num_nodes, minlength=stop - start)
    if "weight" in extras:
        sums = np.add.reduceat(extras["weight"], first) if len(first) else extras["weight"]
        write_array(out / "weights.npy", sums.astype(np.float32))
    if "time" in extras:
        earliest = np.minimum.reduceat(extras["time"], first) if len(first) else extras["time"]
        write_array(out / "times.npy", earliest)
    write_array(out / "indices.npy", (distinct % num_nodes).astype(index_dtype(num_nodes)))
    write_array(out / "counts.npy", counts)
    return len(distinct)


def _gather(parts: Sequence[tuple[Path, int, int]], name: str) -> npt.NDArray[Any]:
    slices = [
        np.load(folder / f"{name}.npy", mmap_mode="r")[first:last] for folder, first, last in parts
    ]
    return np.concatenate(slices) if slices else np.zeros(0, dtype=np.int64)


def join_ranges(ranges: Sequence[Path], folder: Path) -> None:
    """Concatenate the ranges into the arrays of a graph store, one range in memory at a time."""
    counts = np.concatenate([np.load(part / "counts.npy") for part in ranges])
    write_array(folder / "indptr.npy", np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))
    for name in ("indices", "weights", "times"):
        pieces = [part / f"{name}.npy" for part in ranges if (part / f"{name}.npy").exists()]
        if pieces:
            _join_arrays(pieces, folder / f"{name}.npy")


def _join_arrays(pieces: Sequence[Path], out: Path) -> None:
    maps = [np.load(piece, mmap_mode="r") for piece in pieces]
    with atomic_path(out) as temporary:
        shape = (sum(len(part) for part in maps),)
        joined = np.lib.format.open_memmap(temporary, "w+", dtype=maps[0].dtype, shape=shape)
        place = 0
        for part in maps:
            joined[place : place + len(part)] = part
            place += len(part)
        joined.flush()
