"""Embeddings of the training graph, by every model, for evaluation."""

from __future__ import annotations

from typing import Any

from peg_core.artifacts.embedded_graph import Embeddings
from peg_core.artifacts.trained_model import seed_part
from peg_core.storage.stored_path import remove
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.stage import Stage, StageContext, StageResult
from pipeline.stages.train import seeds_of
from workers.shard import Shard
from workers.task_map import TaskProgress
from workers.tasks.embed import (
    EmbedRequest,
    RowsResult,
    components_task,
    embed_task,
    layout_task,
    state_task,
)

# Nodes and edges of one task; independent of the workers, so that a rerun finds its shards.
WORK_PER_TASK = 4_000_000


def settings(config: PipelineConfig) -> dict[str, Any]:
    return {"embed": config.embed.dependencies()}


def run(context: StageContext) -> StageResult:
    inputs, seeds = context.inputs, seeds_of(context.config)
    for done, seed in enumerate(seeds):
        request = EmbedRequest(
            graph=inputs.train_graph,
            features=inputs.features,
            positions=inputs.positions,
            model=inputs.model(seed),
            out=context.out.at(Embeddings, seed_part(seed)),
            dtype=context.config.embed.dtype,
        )
        nodes = embed_graph(context, request, done, len(seeds))
    return StageResult(counts={"nodes": nodes, "models": len(seeds)})


def embed_graph(context: StageContext, request: EmbedRequest, done: int = 0, total: int = 1) -> int:
    """All layers of one graph, which is number ``done`` of ``total``; returns its nodes."""
    out = request.out.open()
    markers = out.folder / "done"
    arguments = {"request": request, "work_per_task": WORK_PER_TASK}
    (layout,) = context.map(layout_task, [Shard("layout", arguments)], markers=markers)
    layers, ranges = layout["layers"], layout["ranges"]
    shard = Shard("components", {"request": request})
    context.map(components_task, [shard], note="components", markers=markers)
    if layout["needs_state"]:
        shards = [
            Shard(f"state-{start}-{stop}", {"request": request, "start": start, "stop": stop})
            for start, stop in ranges
        ]
        context.map(state_task, shards, note="first state", markers=markers)
    for layer in range(layers):
        shards = [
            Shard(
                f"layer-{layer}-{start}-{stop}",
                {"request": request, "layer": layer, "start": start, "stop": stop},
            )
            for start, stop in ranges
        ]

        def on_progress(p: TaskProgress[RowsResult], layer: int = layer) -> None:
            part = done + (layer + p.done / p.total) / layers
            context.progress.update(part, total, f"layer {layer}")

        context.map(embed_task, shards, markers=markers, on_progress=on_progress)
        read = out.layer_file(layer - 1) if layer else out.state_file
        remove(read)
    return layout["nodes"]


STAGE = Stage("embed", 3, ("features", "split", "encode", "train"), settings, run)
