"""The rows of generated graphs with two kinds of node, and of dated ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from peg_core.generators.citation_graph import CitationGraph
from peg_core.generators.edge_generator import CHUNK_ROWS, EdgeChunk
from peg_core.generators.synthetic_tables import community_features
from peg_core.generators.taste_graph import TasteGraph
from peg_core.kernels.generator_kernels import Int64Array
from pipeline.generate.generated_tables import NODE_BATCH_VALUES


def play_batches(graph: TasteGraph, *, seed: int) -> Iterator[pa.RecordBatch]:
    """Columns user, item and plays."""
    likes = graph.likes(seed=seed)
    plays = graph.plays(likes, seed=seed)
    yield from _batches({"user": likes.source, "item": likes.target, "plays": plays})


def friend_batches(graph: TasteGraph, *, rows: int, seed: int) -> Iterator[pa.RecordBatch]:
    """Columns user and friend."""
    pairs = graph.friendships(rows=rows, seed=seed)
    yield from _batches({"user": pairs.source, "friend": pairs.target})


def user_item_batches(graph: TasteGraph, *, rows: int, seed: int) -> Iterator[pa.RecordBatch]:
    """Columns user and item."""
    pairs = graph.candidates(rows=rows, seed=seed)
    yield from _batches({"user": pairs.source, "item": pairs.target})


def citation_batches(graph: CitationGraph, *, seed: int) -> Iterator[pa.RecordBatch]:
    """Columns citing, cited and date, that of the citing paper."""
    pairs = graph.citations(seed=seed)
    days = graph.paper_days(seed=seed)[pairs.source]
    yield from _batches({**_citation(pairs), "date": days}, dates=("date",))


def citation_candidate_batches(
    graph: CitationGraph, *, rows: int, seed: int
) -> Iterator[pa.RecordBatch]:
    """Columns citing and cited."""
    yield from _batches(_citation(graph.candidates(rows=rows, seed=seed)))


def paper_batches(
    graph: CitationGraph, *, seed: int, features: int, noise: float
) -> Iterator[pa.RecordBatch]:
    """Columns paper, x (features), topic and date."""
    topics, days = graph.paper_topics(seed=seed), graph.paper_days(seed=seed)
    step = max(NODE_BATCH_VALUES // features, 1)
    for shard, start in enumerate(range(0, graph.papers, step)):
        topic = topics[start : start + step]
        x = community_features(topic, dimensions=features, seed=seed, noise=noise, shard=shard)
        offsets = np.arange(0, x.size + 1, features, dtype=np.int32)
        yield pa.RecordBatch.from_pydict(
            {
                "paper": pa.array(np.arange(start, start + len(topic))),
                "x": pa.ListArray.from_arrays(offsets, x.ravel()),
                "topic": pa.array(topic),
                "date": _date_column(days[start : start + step]),
            }
        )


def _citation(pairs: EdgeChunk) -> dict[str, Int64Array]:
    return {"citing": pairs.source, "cited": pairs.target}


def _batches(
    columns: dict[str, Int64Array], *, dates: tuple[str, ...] = ()
) -> Iterator[pa.RecordBatch]:
    rows = len(next(iter(columns.values())))
    for start in range(0, rows, CHUNK_ROWS):
        parts = {name: values[start : start + CHUNK_ROWS] for name, values in columns.items()}
        yield pa.RecordBatch.from_pydict(
            {
                name: _date_column(part) if name in dates else pa.array(part)
                for name, part in parts.items()
            }
        )


def _date_column(days: Int64Array) -> pa.Array:
    return pa.array(days.astype(np.int32)).cast(pa.date32())
