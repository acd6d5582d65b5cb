"""How large the graph of a pipeline is: counted where it was ingested, else from its tables."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow.parquet as pq

from peg_core.artifacts.manifest import Manifest
from peg_core.graph.edge_table import column_chunks, find_parquet_files, open_parquet
from pipeline.config.graph_section import GraphConfig
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.plan import make_plan
from pipeline.run.sizing.automatic import Choice, GraphExtent, resolve
from pipeline.stages.ingest import STAGE as INGEST
from pipeline.store.local_store import AnyStore

# Where neither a node table nor whole numbers as ids tell how many nodes there are.
EDGES_PER_NODE = 5


def graph_extent(config: PipelineConfig, store: AnyStore) -> GraphExtent:
    """From the manifest of the ingested graph, or the ends of the Parquet files."""
    (step,) = make_plan([INGEST], config, find=store.find, newest=lambda _: None)
    found = store.find(INGEST.name, step.fingerprint)
    if found is not None:
        return counted_extent(found)
    return table_extent(config.graph)


def counted_extent(ingest: Manifest) -> GraphExtent:
    """Of a graph that was ingested."""
    return GraphExtent(int(ingest.counts["nodes"]), int(ingest.counts["edges"]))


def resolve_here(config: PipelineConfig, store: AnyStore) -> tuple[PipelineConfig, list[Choice]]:
    """The configuration without ``auto`` for the graph that it names."""
    return resolve(config, graph_extent(config, store))


def table_extent(graph: GraphConfig) -> GraphExtent:
    """Rows stand for edges; nodes are the rows of their table, or go by the largest id."""
    edges, spans = 0, []
    for relation in graph.relations:
        files = {file: open_parquet(file).metadata for file in find_parquet_files(relation.files)}
        edges += sum(metadata.num_rows for metadata in files.values())
        chunks = (column_chunks(file, found) for file, found in files.items())
        spans += [_id_span(own, relation.ends) for own in chunks]
    if len(graph.node_tables) == len(graph.kinds):
        tables = [
            open_parquet(file)
            for table in graph.node_tables.values()
            for file in find_parquet_files(table.files)
        ]
        nodes = sum(file.metadata.num_rows for file in tables)
    else:
        known = [span for span in spans if span is not None]
        nodes = edges // EDGES_PER_NODE
        if known:
            nodes = max(high for _, high in known) - min(low for low, _ in known) + 1
    return GraphExtent(min(nodes, 2 * edges), edges, exact=False)


def _id_span(
    chunks: Iterable[pq.ColumnChunkMetaData], columns: tuple[str, str]
) -> tuple[int, int] | None:
    """The smallest and the largest id of a file that says so."""
    ends: list[object] = []
    for chunk in chunks:
        if chunk.path_in_schema in columns and chunk.statistics is not None:
            ends += [chunk.statistics.min, chunk.statistics.max]
    whole = [end for end in ends if isinstance(end, int)]
    return (min(whole), max(whole)) if whole and len(whole) == len(ends) else None
