"""Distinct ids on their way to a number: sorted parts, cut into ranges, merged range by range.

A part holds the distinct ids of some rows, sorted, in row groups of ``GROUP_IDS``; beside it lie
the first ids of the groups. These say where to cut all ids into ranges of about equal size, and
which groups hold the ids of a range.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from peg_core.atomic_file import atomic_path
from peg_core.errors import PegError
from peg_core.graph.edge_rows import EdgeRows
from peg_core.graph.ids.id_file import parquet_ids, write_ids
from peg_core.graph.ids.id_types import BINARY, TEXT, normalise_ids
from peg_core.graph.ids.node_ids import NodeIds
from peg_core.storage.stored_path import readable

Array = npt.NDArray[Any]

# Ids of a row group of a part: the least that a range reads of it.
GROUP_IDS = 65_536
# Keys of edges must fit 63 bits.
MAX_NODES = 2**31
# Flags for every integer in a span beat hashing while the span is not much larger than the rows.
FLAG_FACTOR = 16


@dataclass(frozen=True)
class IdRange:
    """The ids from one cut to the next; the first and the last range are open on one side.

    Args:
        cuts: File with all cuts, or None where there is one range.
        number: Of this range, from 0 on.
    """

    cuts: Path | None = None
    number: int = 0

    def bounds(self) -> tuple[pa.Scalar | None, pa.Scalar | None]:
        """The smallest id, and the smallest of the next range."""
        if self.cuts is None:
            return None, None
        cuts = _read_ids(self.cuts)
        low = cuts[self.number - 1] if self.number else None
        return low, cuts[self.number] if self.number < len(cuts) else None


def collect_ids(
    batches: Iterable[EdgeRows], outs: Sequence[Path], ends: Sequence[Sequence[int]]
) -> list[int]:
    """Write the distinct ids of clean rows as parts, one for each kind of node.

    Args:
        outs: Where they go.
        ends: Which ends of an edge are of each kind: 0, 1 or both.

    Returns:
        How many ids each part has.
    """
    found: list[list[pa.Array]] = [[] for _ in outs]
    for rows in batches:
        for part, own in zip(found, ends, strict=True):
            part.append(union([rows.ends[end] for end in own]))
    return [write_distinct(part, out) for part, out in zip(found, outs, strict=True)]


def write_distinct(arrays: Sequence[pa.Array], out: Path) -> int:
    """Write the union of some id arrays as a part."""
    ids = union(arrays)
    _write(ids[::GROUP_IDS], _first_ids(out))
    _write(ids, out)
    return len(ids)


def union(arrays: Sequence[pa.Array]) -> pa.Array:
    """The distinct ids of some arrays, sorted; dense integers by flags, others by hashing."""
    whole = pa.chunked_array(arrays)
    if whole.type not in (TEXT, BINARY) and len(whole):
        limits = pc.min_max(whole).as_py()
        if limits["max"] - limits["min"] < FLAG_FACTOR * len(whole):
            return _flagged(arrays, limits["min"], limits["max"])
    return normalise_ids(pl.Series("id", whole).unique().sort().to_arrow())


def _flagged(arrays: Iterable[pa.Array], low: int, high: int) -> pa.Array:
    """A flag for every integer of the span; reading them in order sorts."""
    flags = np.zeros(high - low + 1, dtype=np.bool_)
    dtype: np.dtype[Any] = np.dtype(np.int64)
    for array in arrays:
        values = np.asarray(array)
        dtype = values.dtype
        flags[values - dtype.type(low)] = True
    return pa.array(np.flatnonzero(flags).astype(dtype) + dtype.type(low))


def cut_ids(parts: Sequence[Path], ids_per_range: int, out: Path) -> int:
    """Cut the ids of all parts into ranges of about equal size; returns how many ranges."""
    first_ids = pa.chunked_array([_read_ids(_first_ids(part)) for part in parts])
    ordered = pl.Series("id", first_ids).sort()
    step = max(1, ids_per_range // GROUP_IDS)
    cuts = ordered[step::step].unique().sort()
    _write(normalise_ids(cuts.to_arrow()), out)
    return len(cuts) + 1


def merge_parts(parts: Sequence[Path], part: IdRange, *, before: NodeIds | None = None) -> pa.Array:
    """The distinct ids of a range, sorted; those that ``before`` knows are left out."""
    low, high = part.bounds()
    ids = union([_read_range(file, low, high) for file in parts])
    if before is not None:
        ids = ids.filter(pa.array(before.lookup(ids) < 0)).cast(before.type)
    return ids


def write_merged(ids: pa.Array, out: Path) -> int:
    """Write the merged ids of a range; returns how many."""
    _write(ids, out)
    return len(ids)


def merged_ids(files: Iterable[Path]) -> Iterable[pa.Array]:
    """The ids of ranges that were written, a row group at a time."""
    for file in files:
        yield from parquet_ids(pq.ParquetFile(readable(file)))


def number_ids(
    new: Iterable[pa.Array], count: int, folder: Path, *, before: NodeIds | None = None
) -> int:
    """Give ids their numbers in the order in which they come; returns how many nodes there are.

    Where ``before`` is given its ids keep their numbers and the new ones follow.

    Args:
        count: How many ids are new.
    """
    nodes = count + (len(before) if before is not None else 0)
    require_few(nodes)

    def batches() -> Iterable[pa.Array]:
        if before is not None:
            yield from before.batches()
        yield from new

    return write_ids(batches(), folder)


def require_few(nodes: int) -> None:
    """Refuse more nodes than can be numbered."""
    if nodes >= MAX_NODES:
        raise PegError(
            f"the graph has {nodes:,} nodes, at most {MAX_NODES - 1:,} are handled; "
            "leave nodes out, or split the graph"
        )


def _read_range(file: Path, low: pa.Scalar | None, high: pa.Scalar | None) -> pa.Array:
    """The ids of a part that are at least ``low`` and below ``high``; no other group is read."""
    parquet = pq.ParquetFile(readable(file))
    first, stop = 0, parquet.num_row_groups
    if low is not None or high is not None:
        first_ids = _read_ids(_first_ids(file))
        if low is not None:
            first = max(_count(pc.less_equal(first_ids, low)) - 1, 0)
        if high is not None:
            stop = _count(pc.less(first_ids, high))
    ids = _joined(parquet, range(first, stop))
    start = 0 if low is None else _count(pc.less(ids, low))
    end = len(ids) if high is None else _count(pc.less(ids, high))
    return ids[start : max(start, end)]


def _count(flags: pa.Array) -> int:
    return int(pc.sum(flags).as_py() or 0)


def _joined(parquet: pq.ParquetFile, groups: Iterable[int] | None = None) -> pa.Array:
    """The ids of some row groups, or of all, in one piece."""
    chosen = range(parquet.num_row_groups) if groups is None else groups
    table = parquet.read_row_groups(list(chosen), columns=["id"], use_threads=False)
    return normalise_ids(table["id"])


def _read_ids(file: Path) -> pa.Array:
    return _joined(pq.ParquetFile(readable(file)))


def _first_ids(part: Path) -> Path:
    """Where the first ids of the row groups of a part are."""
    return part.with_suffix(".first.parquet")


def _write(ids: pa.Array, file: Path) -> None:
    with atomic_path(file) as temporary:
        pq.write_table(pa.table({"id": ids}), temporary, row_group_size=GROUP_IDS)
