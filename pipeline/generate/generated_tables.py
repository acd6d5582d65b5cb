"""The rows of generated graphs, batch by batch, under the columns that ingestion reads."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from peg_core.generators.edge_generator import CHUNK_ROWS, EdgeGenerator
from peg_core.generators.random_graphs import StochasticBlockModel
from peg_core.generators.synthetic_tables import (
    community_features,
    edge_times,
    edge_weights,
    sample_candidates,
)

# Feature values in a batch of nodes.
NODE_BATCH_VALUES = 2**22


def edge_batches(
    generator: EdgeGenerator, *, seed: int, string_ids: bool, weights: bool, time: bool
) -> Iterator[pa.RecordBatch]:
    """Columns src, dst and, where asked for, weight and time."""
    for index, chunk in enumerate(generator.chunks(seed=seed)):
        columns = {
            "src": id_column(chunk.source, string_ids=string_ids),
            "dst": id_column(chunk.target, string_ids=string_ids),
        }
        rows = len(chunk.source)
        if weights:
            columns["weight"] = pa.array(edge_weights(rows, seed=seed, chunk=index))
        if time:
            columns["time"] = pa.array(edge_times(rows, seed=seed, chunk=index))
        yield pa.RecordBatch.from_pydict(columns)


def node_batches(
    model: StochasticBlockModel, *, seed: int, string_ids: bool, features: int, noise: float
) -> Iterator[pa.RecordBatch]:
    """Columns id, x (features) and label (community)."""
    communities = model.communities(seed=seed)
    step = max(NODE_BATCH_VALUES // features, 1)
    for shard, start in enumerate(range(0, model.nodes, step)):
        label = communities[start : start + step]
        x = community_features(label, dimensions=features, seed=seed, noise=noise, shard=shard)
        ids = np.arange(start, start + len(label))
        offsets = np.arange(0, x.size + 1, features, dtype=np.int32)
        yield pa.RecordBatch.from_pydict(
            {
                "id": id_column(ids, string_ids=string_ids),
                "x": pa.ListArray.from_arrays(offsets, x.ravel()),
                "label": pa.array(label.astype(np.int64)),
            }
        )


def candidate_batches(
    *, nodes: int, rows: int, seed: int, string_ids: bool
) -> Iterator[pa.RecordBatch]:
    """Columns src and dst."""
    for start in range(0, rows, CHUNK_ROWS):
        count = min(CHUNK_ROWS, rows - start)
        pairs = sample_candidates(nodes=nodes, rows=count, seed=seed, first_row=start)
        yield pa.RecordBatch.from_pydict(
            {
                "src": id_column(pairs.source, string_ids=string_ids),
                "dst": id_column(pairs.target, string_ids=string_ids),
            }
        )


def id_column(nodes: npt.NDArray[np.int64], *, string_ids: bool) -> pa.Array:
    """What the user calls the nodes: 17, or "node-17"."""
    numbers = pa.array(nodes)
    if not string_ids:
        return numbers
    return pc.binary_join_element_wise("node-", numbers.cast(pa.string()), "")
