"""Original node ids in index order, and the way back from an id to its index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from peg_core.errors import ArtifactMismatch, InputError

# A direct-address table may be this many times larger than the ids it holds.
DENSE_TABLE_FACTOR = 4


class NodeIds:
    """The ids of all nodes; ``values[i]`` is what the user calls node ``i``.

    Args:
        values: Unique, non-null ids: 64-bit integers or strings.
    """

    def __init__(self, values: pa.Array) -> None:
        self.values = values
        self._table: npt.NDArray[np.int64] | None = None
        self._order: npt.NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def lookup(self, ids: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.int64]:
        """Index of every id, -1 for an id that is null or unknown, [len(ids)]."""
        if isinstance(ids, pa.ChunkedArray):
            ids = ids.combine_chunks()
        if pa.types.is_dictionary(ids.type):
            ids = ids.dictionary_decode()
        if pa.types.is_integer(self.values.type) != pa.types.is_integer(ids.type):
            raise ArtifactMismatch.of(
                what="the type of the ids and of the graph's node ids",
                found=ids.type,
                needed=self.values.type,
            )
        if pa.types.is_integer(self.values.type):
            known = ids.is_valid().to_numpy(zero_copy_only=False)
            wanted = np.asarray(pc.fill_null(ids, 0).cast(self.values.type, safe=False))
            return np.where(known, self._lookup_integers(wanted), -1)
        found = pc.index_in(ids.cast(self.values.type), value_set=self.values, skip_nulls=True)
        return np.asarray(pc.fill_null(found, -1)).astype(np.int64)

    def take(self, indices: npt.NDArray[Any]) -> pa.Array:
        """Ids of the given node indices."""
        return self.values.take(pa.array(indices))

    def _lookup_integers(self, wanted: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        values = np.asarray(self.values)
        if not len(values):
            return np.full(len(wanted), -1, dtype=np.int64)
        low, high = int(values.min()), int(values.max())
        if high - low < DENSE_TABLE_FACTOR * len(values):
            if self._table is None:
                self._table = np.full(high - low + 1, -1, dtype=np.int64)
                self._table[values - low] = np.arange(len(values))
            inside = (wanted >= low) & (wanted <= high)
            return np.where(inside, self._table[np.where(inside, wanted - low, 0)], -1)
        if self._order is None:
            self._order = np.argsort(values, kind="stable")
        place = np.searchsorted(values, wanted, sorter=self._order)
        candidate = self._order[np.minimum(place, len(values) - 1)]
        return np.where(values[candidate] == wanted, candidate, -1)

    def save(self, path: Path) -> None:
        """Write ``node_ids.parquet`` into the folder ``path``."""
        table = pa.table({"id": self.values})
        pq.write_table(table, path / "node_ids.parquet", compression="zstd")

    @classmethod
    def open(cls, path: Path | str) -> NodeIds:
        """Read ``node_ids.parquet`` from the folder ``path``."""
        file = Path(path) / "node_ids.parquet"
        if not file.exists():
            raise InputError.no_such_file(file)
        return cls(pq.read_table(file)["id"].combine_chunks())
