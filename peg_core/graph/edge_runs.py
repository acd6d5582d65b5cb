"""Sorted runs: edges as 64-bit keys, both directions, in files of bounded size.

A key is ``(source * num_nodes + target) * 2 + direction``; direction 0 is the row
as it was read, 1 its mirror image. Sorting keys sorts the adjacency matrix, and a
hub's row can be cut anywhere between two keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from peg_core.atomic_file import atomic_path, write_array
from peg_core.errors import PegError
from peg_core.graph.edge_rows import Dirt, EdgeRows
from peg_core.graph.id_types import BINARY, TEXT
from peg_core.graph.node_ids import NodeIds

Array = npt.NDArray[Any]

# Keys this far apart are kept as samples, to cut ranges of equal size.
SAMPLE_EVERY = 4096
# Keys must fit 63 bits.
MAX_NODES = 2**31
# Flags for every integer in a span beat hashing while the span is not much larger than the rows.
FLAG_FACTOR = 16


def collect_ids(batches: Iterable[EdgeRows], out: Path) -> int:
    """Write the distinct ids of clean rows, sorted; returns how many."""
    parts = [union([rows.source, rows.target]) for rows in batches]
    return write_distinct(parts, out)


def write_distinct(parts: Sequence[pa.Array], out: Path) -> int:
    """Write the union of some id arrays, sorted."""
    ids = union(parts)
    with atomic_path(out) as temporary:
        pq.write_table(pa.table({"id": ids}), temporary)
    return len(ids)


def union(arrays: Sequence[pa.Array]) -> pa.Array:
    """The distinct ids of some arrays, sorted; dense integers by flags, others by hashing."""
    whole = pa.chunked_array(arrays)
    if whole.type not in (TEXT, BINARY) and len(whole):
        limits = pc.min_max(whole).as_py()
        if limits["max"] - limits["min"] < FLAG_FACTOR * len(whole):
            return pa.array(_flagged(arrays, limits["min"], limits["max"]))
    return pl.Series("id", whole).unique().sort().to_arrow()


def union_of_files(parts: Sequence[Path]) -> pa.Array:
    """:func:`union` of sorted files, one of them in memory at a time."""
    files = [file for part in parts if (file := pq.ParquetFile(part)).metadata.num_rows]
    if files and files[0].schema_arrow.field("id").type not in (TEXT, BINARY):
        groups = [file.metadata.row_group(i) for file in files for i in range(file.num_row_groups)]
        statistics = [group.column(0).statistics for group in groups]
        low, high = min(s.min for s in statistics), max(s.max for s in statistics)
        if high - low < FLAG_FACTOR * max(file.metadata.num_rows for file in files):
            arrays = (file.read()["id"].combine_chunks() for file in files)
            return pa.array(_flagged(arrays, low, high))
    scan = pl.scan_parquet(list(parts)).unique().sort("id")
    return scan.collect(engine="streaming")["id"].to_arrow()


def _flagged(arrays: Iterable[pa.Array], low: int, high: int) -> Array:
    """A flag for every integer of the span; reading them in order sorts."""
    flags = np.zeros(high - low + 1, dtype=np.bool_)
    dtype: np.dtype[Any] = np.dtype(np.int64)
    for array in arrays:
        values = np.asarray(array)
        dtype = values.dtype
        flags[values - dtype.type(low)] = True
    return np.flatnonzero(flags).astype(dtype) + dtype.type(low)


def merge_ids(parts: Sequence[Path], folder: Path, *, before: NodeIds | None = None) -> int:
    """Number the distinct ids of all parts; returns how many there are.

    Ids are numbered in sorted order; where ``before`` is given its ids keep their
    numbers and the new ones follow, sorted among themselves.
    """
    values = union_of_files(parts)
    if before is not None:
        new = values.filter(pa.array(before.lookup(values) < 0))
        values = pa.concat_arrays([before.values, new.cast(before.values.type)])
    if len(values) >= MAX_NODES:
        raise PegError(
            f"the graph has {len(values):,} nodes, at most {MAX_NODES - 1:,} are handled; "
            "leave nodes out, or split the graph"
        )
    NodeIds(values).save(folder)
    return len(values)


def write_runs(
    batches: Iterable[EdgeRows], node_ids: NodeIds, dirt: Dirt, rows_per_run: int, out: Path
) -> list[str]:
    """Write sorted runs of about ``rows_per_run`` rows each; returns the names of their folders.

    Without weights and times a run holds each (edge, direction) once. With them all
    rows are kept, those of one edge in the order they were read.
    """
    runs: list[str] = []
    held: list[dict[str, Array]] = []
    for rows in batches:
        held.append(_to_keys(rows, node_ids, dirt))
        if sum(len(part["keys"]) for part in held) >= 2 * rows_per_run:
            runs.append(_write_run(held, out / f"run-{len(runs)}"))
            held = []
    if held:
        runs.append(_write_run(held, out / f"run-{len(runs)}"))
    return runs


def _to_keys(rows: EdgeRows, node_ids: NodeIds, dirt: Dirt) -> dict[str, Array]:
    """Both directions of the rows as keys [2 * rows], self-loops counted and left out."""
    source, target = node_ids.lookup(rows.source), node_ids.lookup(rows.target)
    keep = source != target
    dirt.self_loops += int(len(keep) - np.count_nonzero(keep))
    if not keep.all():
        source, target = source[keep], target[keep]
    num_nodes = len(node_ids)
    keys = np.empty(2 * len(source), dtype=np.int64)
    keys[: len(source)] = (source * num_nodes + target) * 2
    keys[len(source) :] = (target * num_nodes + source) * 2 + 1
    columns = {"keys": keys}
    for name, values in (("weights", rows.weight), ("times", rows.time)):
        if values is not None:
            columns[name] = np.tile(values[keep], 2)
    return columns


def _write_run(parts: list[dict[str, Array]], folder: Path) -> str:
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    parts.clear()
    keys = columns["keys"]
    if len(columns) == 1:
        keys.sort()
        keys = keys[np.diff(keys, prepend=-1) != 0]
    else:
        # mirror images stand behind all rows: order by edge alone keeps the rows' own order
        order = np.argsort(keys >> 1, kind="stable")
        for name in columns.keys() - {"keys"}:
            write_array(folder / f"{name}.npy", columns[name][order])
        keys = keys[order]
    write_array(folder / "samples.npy", keys[::SAMPLE_EVERY] >> 1)
    write_array(folder / "keys.npy", keys)
    return folder.name
