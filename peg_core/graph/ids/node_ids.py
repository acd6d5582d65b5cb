"""Original node ids in index order, and the way back from an id to its index."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from peg_core.errors import ArtifactMismatch
from peg_core.graph.ids.id_file import IdFacts, IdFile, build_tables, stored_id_type, write_ids
from peg_core.graph.ids.id_index import (
    hash_bytes,
    lookup_dense,
    lookup_integers,
    lookup_strings,
    mix_all,
)
from peg_core.graph.ids.id_types import BINARY, TEXT, UNSIGNED, normalise_ids, string_buffers

Array = npt.NDArray[Any]


class NodeIds:
    """The ids of all nodes; ``values[i]`` is what the user calls node ``i``.

    Of ids that are stored, looking up reads mapped tables alone; the ids themselves are read
    when they are first asked for.

    Args:
        ids: Unique, non-null ids, 64-bit integers, strings or bytes; or where they are stored.
    """

    def __init__(self, ids: pa.Array | IdFile) -> None:
        self._ids = ids if isinstance(ids, IdFile) else normalise_ids(ids)

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def type(self) -> pa.DataType:
        """The kind of all ids."""
        return self._ids.type

    @property
    def is_text(self) -> bool:
        return self.type in (TEXT, BINARY)

    @cached_property
    def values(self) -> pa.Array:
        """All ids, [num_nodes]."""
        return normalise_ids(self._ids.read()) if isinstance(self._ids, IdFile) else self._ids

    def batches(self) -> Iterator[pa.Array]:
        """All ids in their order; where they are stored, a row group at a time."""
        return self._ids.batches() if isinstance(self._ids, IdFile) else iter([self._ids])

    @cached_property
    def tables(self) -> dict[str, Array]:
        """What look-ups read; built on first use unless they are stored with the ids."""
        stored = self._ids.tables if isinstance(self._ids, IdFile) else {}
        if stored:
            return stored
        facts = IdFacts.of(self.values)

        def new_array(name: str, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Array:
            del name
            return np.zeros(shape, dtype=dtype)

        return build_tables([self.values], self.type, facts, new_array)

    def lookup(self, ids: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int64]:
        """Index of every id, -1 for an id that is null or unknown, [len(ids)]."""
        if pa.types.is_dictionary(ids.type):
            chunks = ids.chunks if isinstance(ids, pa.ChunkedArray) else [ids]
            found = [self._lookup_dictionary(chunk) for chunk in chunks]
            return np.concatenate([np.zeros(0, dtype=np.int64), *found])
        wanted = normalise_ids(ids)
        if (wanted.type in (TEXT, BINARY), self.is_text) not in ((True, True), (False, False)):
            raise ArtifactMismatch.of(
                what="the type of the ids and of the graph's node ids",
                found=ids.type,
                needed=self.type,
            )
        if self.is_text:
            offsets, data = string_buffers(wanted)
            hashes = hash_bytes(offsets, data)
            tables = (self.tables[name] for name in ("id_slots", "id_offsets", "id_bytes"))
            index = lookup_strings(*tables, offsets, data, hashes)
        else:
            index = self._lookup_integers(wanted)
        if wanted.null_count:
            index[np.asarray(wanted.is_null())] = -1
        return index

    def _lookup_dictionary(self, ids: pa.DictionaryArray) -> npt.NDArray[np.int64]:
        """Every distinct value is looked up once, where there are fewer of them than rows."""
        if len(ids.dictionary) >= len(ids):
            return self.lookup(ids.dictionary_decode())
        found = np.full(len(ids), -1, dtype=np.int64)
        valid = np.asarray(ids.indices.is_valid())
        found[valid] = self.lookup(ids.dictionary)[np.asarray(ids.indices.drop_null())]
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
        write_ids([self.values], path)

    @classmethod
    def open(cls, path: Path | str) -> NodeIds:
        """The ids of the folder ``path``, their tables memory-mapped."""
        return cls(IdFile(Path(path) if isinstance(path, str) else path))

    @staticmethod
    def stored_type(folder: Path) -> pa.DataType:
        """The type of the ids in a folder, without reading them."""
        return stored_id_type(folder)

    @cached_property
    def _smallest(self) -> np.uint64:
        """The 64 bits of the smallest integer."""
        stored = isinstance(self._ids, IdFile)
        smallest = self._ids.smallest if stored else IdFacts.of(self.values).smallest
        return np.uint64(smallest % 2**64)

    def _lookup_integers(self, wanted: pa.Array) -> npt.NDArray[np.int64]:
        raw = wanted.fill_null(0) if wanted.null_count else wanted
        numbers = np.asarray(raw)
        bits = numbers.view(np.uint64)
        if "id_dense" in self.tables:
            found = lookup_dense(self.tables["id_dense"], self._smallest, bits)
        else:
            found = lookup_integers(self.tables["id_slots"], bits)
        if (wanted.type == UNSIGNED) != (self.type == UNSIGNED):
            # the same 64 bits mean another number on the other side of 2**63
            found[numbers.view(np.int64) < 0] = -1
        return found
