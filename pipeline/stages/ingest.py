"""Parquet edge lists to a graph store."""

from __future__ import annotations

from typing import Any

from peg_core.graph.edge_exchange import EdgeColumns
from pipeline.config import PipelineConfig
from pipeline.stage import Stage, StageContext, StageResult
from workers.ingest_tasks import IngestRequest, ingest


def settings(config: PipelineConfig) -> dict[str, Any]:
    return {"graph": config.graph.model_dump()}


def files(config: PipelineConfig) -> dict[str, str]:
    graph = config.graph
    return {"graph.edges": graph.edges, **({"graph.nodes": graph.nodes} if graph.nodes else {})}


def run(context: StageContext) -> StageResult:
    graph = context.config.graph
    request = IngestRequest(
        edges=graph.edges,
        columns=EdgeColumns(graph.source, graph.target, graph.weight, graph.time),
        nodes=graph.nodes,
        node_id=graph.node_id,
        features=graph.features,
        folder=context.folder.absolute(),
    )
    counts = ingest(context.cluster, request, context.progress.update)
    return StageResult(peak_memory_bytes=counts.pop("peak_memory_bytes"), counts=counts)


STAGE = Stage("ingest", 1, (), settings, run, files)
