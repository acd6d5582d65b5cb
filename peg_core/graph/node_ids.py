"""Original node ids in index order, and the way back from an id to its index."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from peg_core.atomic_file import atomic_path, write_array
from peg_core.errors import ArtifactMismatch, InputError
from peg_core.graph.id_index import (
    build_dense,
    build_slots,
    dense_span,
    hash_bytes,
    lookup_dense,
    lookup_integers,
    lookup_strings,
    mix_all,
)
from peg_core.graph.id_types import BINARY, TEXT, UNSIGNED, normalise_ids
from peg_core.storage.stored_path import readable

Array = npt.NDArray[Any]
TABLE_NAMES = ("id_dense", "id_slots", "id_offsets", "id_bytes")


class NodeIds:
    """The ids of all nodes; ``values[i]`` is what the user calls node ``i``.

    Args:
        values: Unique, non-null ids: 64-bit integers, strings or bytes.
        tables: Look-up tables by name, where they were built before.
    """

    def __init__(self, values: pa.Array, tables: dict[str, Array] | None = None) -> None:
        self.values = normalise_ids(values)
        self._given = tables or {}

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_text(self) -> bool:
        return self.values.type in (TEXT, BINARY)

    @cached_property
    def tables(self) -> dict[str, Array]:
        """What look-ups read; built on first use unless they came with the ids."""
        if self._given:
            return self._given
        if self.is_text:
            offsets, data = string_buffers(self.values)
            slots = build_slots(hash_bytes(offsets, data))
            return {"id_slots": slots, "id_offsets": offsets, "id_bytes": data}
        values = np.asarray(self.values)
        span = dense_span(values)
        if span is not None:
            return {"id_dense": build_dense(values, span)}
        return {"id_slots": build_slots(values.view(np.uint64))}

    def lookup(self, ids: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int64]:
        """Index of every id, -1 for an id that is null or unknown, [len(ids)]."""
        wanted = normalise_ids(ids)
        if (wanted.type in (TEXT, BINARY), self.is_text) not in ((True, True), (False, False)):
            raise ArtifactMismatch.of(
                what="the type of the ids and of the graph's node ids",
                found=ids.type,
                needed=self.values.type,
            )
        if self.is_text:
            offsets, data = string_buffers(wanted)
            hashes = hash_bytes(offsets, data)
            tables = (self.tables[name] for name in ("id_slots", "id_offsets", "id_bytes"))
            found = lookup_strings(*tables, offsets, data, hashes)
        else:
            found = self._lookup_integers(wanted)
        if wanted.null_count:
            found[np.asarray(wanted.is_null())] = -1
        return found

    def hashes(self) -> npt.NDArray[np.uint64]:
        """64 bits per node that depend on its id alone, not on its index, [num_nodes]."""
        if self.is_text:
            return hash_bytes(*string_buffers(self.values))
        return mix_all(np.asarray(self.values).view(np.uint64))

    def take(self, indices: Array) -> pa.Array:
        """Ids of the given node indices."""
        return self.values.take(pa.array(indices))

    def save(self, path: Path) -> None:
        """Write the ids and their look-up tables into the folder ``path``."""
        with atomic_path(path / "node_ids.parquet") as temporary:
            pq.write_table(pa.table({"id": self.values}), temporary, compression="zstd")
        for name in TABLE_NAMES:
            (path / f"{name}.npy").unlink(missing_ok=True)
        for name, table in self.tables.items():
            write_array(path / f"{name}.npy", table)

    @classmethod
    def open(cls, path: Path | str) -> NodeIds:
        """Read the ids of the folder ``path``, their tables memory-mapped."""
        folder = Path(path) if isinstance(path, str) else path
        if not (folder / "node_ids.parquet").exists():
            raise InputError.no_such_file(folder / "node_ids.parquet")
        files = {name: folder / f"{name}.npy" for name in TABLE_NAMES}
        tables = {
            name: np.load(file, mmap_mode="r") for name, file in files.items() if file.exists()
        }
        return cls(pq.read_table(folder / "node_ids.parquet")["id"].combine_chunks(), tables)

    @staticmethod
    def stored_type(folder: Path) -> pa.DataType:
        """The type of the ids in a folder, without reading them."""
        return pq.read_schema(readable(folder / "node_ids.parquet")).field("id").type

    @cached_property
    def _smallest(self) -> int:
        return int(np.asarray(self.values).min()) if len(self) else 0

    def _lookup_integers(self, wanted: pa.Array) -> npt.NDArray[np.int64]:
        raw = wanted.fill_null(0) if wanted.null_count else wanted
        numbers = np.asarray(raw)
        bits = numbers.view(np.uint64)
        if "id_dense" in self.tables:
            smallest = np.int64(self._smallest).view(np.uint64) if self._smallest < 0 else (
                np.uint64(self._smallest)
            )  # fmt: skip
            found = lookup_dense(self.tables["id_dense"], smallest, bits)
        else:
            found = lookup_integers(self.tables["id_slots"], bits)
        if (wanted.type == UNSIGNED) != (self.values.type == UNSIGNED):
            # the same 64 bits mean another number on the other side of 2**63
            found[numbers.view(np.int64) < 0] = -1
        return found


def string_buffers(values: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Offsets [len + 1] and bytes of a large string or binary array."""
    _, offsets, data = values.buffers()
    first = np.frombuffer(offsets, dtype=np.int64)[values.offset : values.offset + len(values) + 1]
    if not len(first):
        first = np.zeros(1, dtype=np.int64)
    if data is None or not data.size:
        return first, np.zeros(1, dtype=np.uint8)
    return first, np.frombuffer(data, dtype=np.uint8)
