"""Nearest-neighbour indexes of positions and embeddings, to recommend with."""

from __future__ import annotations

from typing import Any

from peg_core.artifacts.vector_indexes import VectorIndexes
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.stage import Stage, StageContext, StageResult
from workers.task_map import Shard
from workers.tasks.recommend import build_index_task


def settings(config: PipelineConfig) -> dict[str, Any]:
    return {"graph": config.recommend.graph if config.recommend else None}


def enabled(config: PipelineConfig) -> bool:
    return config.recommend is not None


def run(context: StageContext) -> StageResult:
    recommend = context.config.recommend
    assert recommend is not None  # the stage is enabled only then
    embedded = context.inputs.best_scorer(graph=recommend.graph).embedded
    out = context.out.at(VectorIndexes)
    names = VectorIndexes.names(len(context.config.encodings))
    shards = [Shard(name, {"embedded": embedded, "out": out, "name": name}) for name in names]
    results = context.map(build_index_task, shards, note="indexes")
    return StageResult(
        counts={
            "indexes": len(names),
            "rows": results[0]["rows"],
            "bytes": sum(result["bytes"] for result in results),
        }
    )


STAGE = Stage(
    "index",
    1,
    ("ingest", "split", "encode", "train", "embed", "encode_all", "embed_all"),
    settings,
    run,
    enabled=enabled,
)
