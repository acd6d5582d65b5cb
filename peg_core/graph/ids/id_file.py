"""Node ids on disk: ``node_ids.parquet`` and the look-up tables beside it.

The ids of a large graph are never held at once: they are written, read back and indexed a row
group at a time, and the tables are filled through memory maps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from peg_core.atomic_file import atomic_path
from peg_core.errors import InputError
from peg_core.graph.ids.id_index import dense_span, fill_dense, fill_slots, hash_bytes, num_slots
from peg_core.graph.ids.id_types import BINARY, TEXT, normalise_ids, string_buffers
from peg_core.mapped_array import new_mapped_array
from peg_core.storage.stored_path import readable

Array = npt.NDArray[Any]
NewArray = Callable[[str, tuple[int, ...], npt.DTypeLike], Array]
FILE_NAME = "node_ids.parquet"
TABLE_NAMES = ("id_dense", "id_slots", "id_offsets", "id_bytes")
# Ids of a row group: what is held at once.
GROUP_IDS = 1024 * 1024


@dataclass(frozen=True)
class IdFacts:
    """What must be known of all ids before their tables can be made.

    Args:
        count: How many there are.
        smallest, largest: Of integers; 0 where there are none.
        text_bytes: Bytes of all strings together.
    """

    count: int = 0
    smallest: int = 0
    largest: int = 0
    text_bytes: int = 0

    @classmethod
    def of(cls, ids: pa.Array) -> IdFacts:
        """Of some ids."""
        if not len(ids):
            return cls()
        if ids.type in (TEXT, BINARY):
            offsets, _ = string_buffers(ids)
            return cls(len(ids), text_bytes=int(offsets[-1] - offsets[0]))
        limits = pc.min_max(ids).as_py()
        return cls(len(ids), limits["min"], limits["max"])

    def __add__(self, other: IdFacts) -> IdFacts:
        if not self.count or not other.count:
            return self if self.count else other
        return IdFacts(
            self.count + other.count,
            min(self.smallest, other.smallest),
            max(self.largest, other.largest),
            self.text_bytes + other.text_bytes,
        )


class IdFile:
    """The ids that are stored in a folder; what is asked for is read, tables are mapped."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        if not (folder / FILE_NAME).exists():
            raise InputError.no_such_file(folder / FILE_NAME)
        file = self._parquet()
        self.type = file.schema_arrow.field("id").type
        self._metadata = file.metadata

    def __len__(self) -> int:
        return int(self._metadata.num_rows)

    def read(self) -> pa.Array:
        """All ids."""
        return pq.read_table(self._folder / FILE_NAME)["id"].combine_chunks()

    def batches(self) -> Iterator[pa.Array]:
        """The ids in their order, a row group at a time."""
        return parquet_ids(self._parquet())

    @cached_property
    def smallest(self) -> int:
        """The smallest of integer ids, from the statistics of the row groups; 0 without ids."""
        groups = range(self._metadata.num_row_groups)
        statistics = [self._metadata.row_group(group).column(0).statistics for group in groups]
        if all(found is not None and found.has_min_max for found in statistics):
            return min((int(found.min) for found in statistics), default=0)
        return min((IdFacts.of(ids).smallest for ids in self.batches()), default=0)

    @cached_property
    def tables(self) -> dict[str, Array]:
        """The look-up tables that were written with the ids, by name."""
        files = {name: self._folder / f"{name}.npy" for name in TABLE_NAMES}
        return {name: np.load(file, mmap_mode="r") for name, file in files.items() if file.exists()}

    def _parquet(self) -> pq.ParquetFile:
        return pq.ParquetFile(self._folder / FILE_NAME, memory_map=True)


def parquet_ids(file: pq.ParquetFile, groups: Iterable[int] | None = None) -> Iterator[pa.Array]:
    """Ids of a Parquet file, a row group at a time."""
    for group in range(file.num_row_groups) if groups is None else groups:
        column = file.read_row_group(group, columns=["id"], use_threads=False)["id"]
        yield normalise_ids(column)


def stored_id_type(folder: Path) -> pa.DataType:
    """The type of the ids in a folder; nothing else is read."""
    return pq.read_schema(readable(folder / FILE_NAME)).field("id").type


def write_ids(batches: Iterable[pa.Array], folder: Path) -> int:
    """Write ids of one type, in this order, and their look-up tables; returns how many.

    The files do not depend on how the ids are cut into batches.
    """
    facts = _write_parquet(batches, folder / FILE_NAME)
    for name in TABLE_NAMES:
        (folder / f"{name}.npy").unlink(missing_ok=True)
    with ExitStack() as files:

        def new_file(name: str, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
            temporary = files.enter_context(atomic_path(folder / f"{name}.npy"))
            return new_mapped_array(temporary, shape, dtype)

        build_tables(IdFile(folder).batches(), stored_id_type(folder), facts, new_file)
    return facts.count


def _write_parquet(batches: Iterable[pa.Array], file: Path) -> IdFacts:
    facts = IdFacts()
    writer: pq.ParquetWriter | None = None
    with atomic_path(file) as temporary, ExitStack() as opened:
        for ids in _equal_batches(batches):
            table = pa.table({"id": ids})
            if writer is None:
                writer = pq.ParquetWriter(temporary, table.schema, compression="zstd")
                opened.enter_context(writer)
            writer.write_table(table, row_group_size=GROUP_IDS)
            facts += IdFacts.of(ids)
        opened.close()  # the footer is written before the file gets its name
    return facts


def _equal_batches(batches: Iterable[pa.Array]) -> Iterator[pa.Array]:
    """The same ids in pieces of ``GROUP_IDS``; one piece at least, which may be empty."""
    waiting: list[pa.Array] = []
    first = True
    for ids in batches:
        waiting.append(ids)
        if sum(map(len, waiting)) >= GROUP_IDS:
            whole = pa.concat_arrays(waiting)
            full = len(whole) // GROUP_IDS * GROUP_IDS
            yield from (whole.slice(start, GROUP_IDS) for start in range(0, full, GROUP_IDS))
            waiting, first = [whole.slice(full)], False
    rest = pa.concat_arrays(waiting)
    if len(rest) or first:
        yield rest


def build_tables(
    batches: Iterable[pa.Array], kind: pa.DataType, facts: IdFacts, new_array: NewArray
) -> dict[str, Array]:
    """What look-ups read, by name, in arrays of zeros that ``new_array`` makes."""
    if kind in (TEXT, BINARY):
        return _build_text_tables(batches, facts, new_array)
    first = 0
    span = dense_span(facts.count, facts.smallest, facts.largest)
    if span is not None:
        dense = new_array("id_dense", (span,), np.int32 if facts.count < 2**31 else np.int64)
        dense[:] = -1
        for ids in batches:
            values = np.asarray(ids)
            fill_dense(dense, values.view(np.uint64), np.uint64(facts.smallest % 2**64), first)
            first += len(ids)
        return {"id_dense": dense}
    slots = new_array("id_slots", (num_slots(facts.count), 2), np.uint64)
    for ids in batches:
        fill_slots(slots, np.asarray(ids).view(np.uint64), first)
        first += len(ids)
    return {"id_slots": slots}


def _build_text_tables(
    batches: Iterable[pa.Array], facts: IdFacts, new_array: NewArray
) -> dict[str, Array]:
    slots = new_array("id_slots", (num_slots(facts.count), 2), np.uint64)
    all_offsets = new_array("id_offsets", (facts.count + 1,), np.int64)
    all_data = new_array("id_bytes", (max(facts.text_bytes, 1),), np.uint8)
    first = 0
    for ids in batches:
        offsets, data = string_buffers(ids)
        start = all_offsets[first]
        stop = start + offsets[-1] - offsets[0]
        all_offsets[first : first + len(offsets)] = offsets - offsets[0] + start
        all_data[start:stop] = data[offsets[0] : offsets[-1]]
        fill_slots(slots, hash_bytes(offsets, data), first)
        first += len(ids)
    return {"id_slots": slots, "id_offsets": all_offsets, "id_bytes": all_data}
