"""Nearest-neighbour indexes of positions and embeddings, to recommend with."""

from __future__ import annotations

from typing import Any

from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.stage import Stage, StageContext, StageResult
from pipeline.stages.embed import embedding_file
from pipeline.stages.train import best_model
from workers.task_map import Shard, task_map
from workers.tasks.model_scorer import ScorerRequest
from workers.tasks.recommend import IndexRequest, build_index_task


def settings(config: PipelineConfig) -> dict[str, Any]:
    return {"graph": config.recommend.graph if config.recommend else None}


def enabled(config: PipelineConfig) -> bool:
    return config.recommend is not None


def run(context: StageContext) -> StageResult:
    request = IndexRequest(recommend_scorer(context), context.folder.absolute())
    names = request.names()
    results = task_map(
        context.cluster,
        build_index_task,
        [Shard(name, {"request": request, "name": name}) for name in names],
        markers=request.out / "done",
        on_progress=lambda p: context.progress.update(p.done, p.total, "indexes"),
    )
    return StageResult(
        counts={
            "indexes": len(names),
            "rows": results[0]["rows"],
            "bytes": sum(result["bytes"] for result in results),
        },
        peak_memory_bytes=max(result["peak_memory_bytes"] for result in results),
    )


def recommend_scorer(context: StageContext) -> ScorerRequest:
    """The best model over the graph that recommendations are based on."""
    recommend = context.config.recommend
    assert recommend is not None  # the stages that ask are enabled only then
    inputs = {name: path.absolute() for name, path in context.inputs.items()}
    everything = recommend.graph == "all"
    model = best_model(inputs["train"])
    embedded = inputs["embed_all"] if everything else inputs["embed"] / model.name
    return ScorerRequest(
        graph=inputs["ingest"] if everything else inputs["split"] / "train_graph",
        positions=inputs["encode_all"] if everything else inputs["encode"],
        model=model,
        embeddings=embedding_file(embedded, context.config),
        num_encodings=len(context.config.encodings),
    )


STAGE = Stage(
    "index",
    1,
    ("ingest", "split", "encode", "train", "embed", "encode_all", "embed_all"),
    settings,
    run,
    enabled=enabled,
)
