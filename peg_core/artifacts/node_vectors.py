"""Vectors of all nodes beside their original ids, as one Parquet file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from peg_core.atomic_file import atomic_path
from peg_core.errors import ArtifactMismatch
from peg_core.graph.ids.graph_ids import GraphIds, KindIds
from peg_core.graph.ids.id_types import cast_ids

Array = npt.NDArray[np.floating[Any]]

# Values of a row group at most, 32 MB: what is held at a time.
GROUP_VALUES = 2**23


def write_node_vectors(file: Path, ids: GraphIds, vectors: Mapping[str, Array]) -> int:
    """Write a row for every node, part by part; the file appears when it is whole.

    The columns are ``kind``, where nodes are of several kinds, ``id``, and one of lists of float32
    of a fixed length for each array.

    Args:
        file: Where to.
        ids: Of the nodes; where kinds have ids of several types they are written as text.
        vectors: [num_nodes, width] by the name of the column.

    Returns:
        The number of rows.
    """
    for name, array in vectors.items():
        if len(array) != len(ids):
            raise ArtifactMismatch.of(
                what=f"{name} and the ids of the graph",
                found=f"{len(array):,} rows",
                needed=f"{len(ids):,}",
            )
    fields = [("kind", pa.string())] if ids.kinds[0].name is not None else []
    fields += [("id", ids.type)]
    fields += [(name, pa.list_(pa.float32(), x.shape[1])) for name, x in vectors.items()]
    schema = pa.schema(fields)
    rows = max(1, GROUP_VALUES // max(1, sum(array.shape[1] for array in vectors.values())))
    with (
        atomic_path(file) as temporary,
        pq.ParquetWriter(temporary, schema, compression="zstd", use_dictionary=["kind"]) as writer,
    ):
        for kind in ids.kinds:
            for first, part in _parts(kind, rows):
                writer.write_batch(_batch(schema, kind, first, part, vectors))
    return len(ids)


def _parts(kind: KindIds, rows: int) -> Iterator[tuple[int, pa.Array]]:
    """The ids of a kind in their order with the number of their first node."""
    first = kind.first
    for batch in kind.ids.batches():
        for start in range(0, len(batch), rows):
            part = batch[start : start + rows]
            yield first, part
            first += len(part)


def _batch(
    schema: pa.Schema, kind: KindIds, first: int, part: pa.Array, vectors: Mapping[str, Array]
) -> pa.RecordBatch:
    columns = [pa.array([kind.name] * len(part))] if kind.name is not None else []
    columns.append(cast_ids(part, schema.field("id").type))
    for name, array in vectors.items():
        values = np.asarray(array[first : first + len(part)], dtype=np.float32)
        columns.append(
            pa.FixedSizeListArray.from_arrays(values.ravel(), type=schema.field(name).type)
        )
    return pa.record_batch(columns, schema=schema)
