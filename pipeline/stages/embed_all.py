"""Embeddings of the graph of all known edges, by the best model, to score with."""

from __future__ import annotations

from peg_core.graph.graph_store import GraphStore
from pipeline.run.stage import Stage, StageContext, StageResult
from pipeline.stages.embed import embed_graph, settings
from pipeline.stages.encode_all import enabled
from pipeline.stages.train import best_model
from workers.tasks.embed import EmbedRequest


def run(context: StageContext) -> StageResult:
    graph = context.inputs["ingest"].absolute()
    request = EmbedRequest(
        graph=graph,
        features=context.inputs["features"].absolute(),
        positions=context.inputs["encode_all"].absolute(),
        model=best_model(context.inputs["train"].absolute()),
        out=context.folder.absolute(),
        num_encodings=len(context.config.encodings),
        dtype=context.config.embed.dtype,
    )
    peak = embed_graph(context, request, 0, 1)
    nodes = GraphStore.open(graph).num_nodes
    return StageResult(counts={"nodes": nodes}, peak_memory_bytes=peak)


STAGE = Stage(
    "embed_all",
    3,
    ("ingest", "features", "encode_all", "train"),
    settings,
    run,
    enabled=enabled,
)
