"""The rows of a generated graph of papers, whose titles are their ids."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from peg_core.generators.edge_generator import CHUNK_ROWS, EdgeChunk
from peg_core.generators.paper_graph import Papers
from peg_core.generators.paper_words import TOPICS, VOCABULARY
from peg_core.generators.synthetic_tables import sample_candidates


def reference_batches(papers: Papers, citations: EdgeChunk) -> Iterator[pa.RecordBatch]:
    """Columns src, the citing paper, and dst, the cited one."""
    yield _pairs(papers, citations)


def paper_rows(papers: Papers) -> Iterator[pa.RecordBatch]:
    """Columns id (title), field, topic, year, words, and x: the numbers of these words."""
    used = [np.flatnonzero(row) for row in papers.words]
    yield pa.RecordBatch.from_pydict(
        {
            "id": papers.titles,
            "field": [TOPICS[topic].field for topic in papers.topics.tolist()],
            "topic": [TOPICS[topic].name for topic in papers.topics.tolist()],
            "year": papers.years,
            "words": [[VOCABULARY[word] for word in row] for row in used],
            "x": pa.array([row.tolist() for row in used], pa.list_(pa.int32())),
        }
    )


def paper_pairs(papers: Papers, *, rows: int, seed: int) -> Iterator[pa.RecordBatch]:
    """Columns src and dst: different pairs of papers, some of them edges."""
    for start in range(0, rows, CHUNK_ROWS):
        count = min(CHUNK_ROWS, rows - start)
        yield _pairs(
            papers,
            sample_candidates(nodes=len(papers.titles), rows=count, seed=seed, first_row=start),
        )


def _pairs(papers: Papers, pairs: EdgeChunk) -> pa.RecordBatch:
    titles = pa.array(papers.titles)
    return pa.RecordBatch.from_pydict(
        {"src": titles.take(pa.array(pairs.source)), "dst": titles.take(pa.array(pairs.target))}
    )
