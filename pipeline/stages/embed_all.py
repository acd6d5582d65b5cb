"""Embeddings of the graph of all known edges, by the best model, to score with."""

from __future__ import annotations

from peg_core.artifacts.embedded_graph import Embeddings
from pipeline.run.stage import Stage, StageContext, StageResult
from pipeline.stages.embed import embed_graph, settings
from pipeline.stages.encode_all import enabled
from workers.tasks.embed import EmbedRequest


def run(context: StageContext) -> StageResult:
    inputs = context.inputs
    request = EmbedRequest(
        graph=inputs.graph,
        features=inputs.features,
        positions=inputs.all_positions,
        model=inputs.best_model,
        out=context.out.at(Embeddings),
        dtype=context.config.embed.dtype,
    )
    return StageResult(counts={"nodes": embed_graph(context, request)})


STAGE = Stage(
    "embed_all",
    3,
    ("ingest", "features", "encode_all", "train", "refit"),
    settings,
    run,
    enabled=enabled,
)
