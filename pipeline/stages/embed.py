"""Embeddings of the training graph, by every model, for evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from peg_core.graph.graph_store import GraphStore
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.stage import Stage, StageContext, StageResult
from pipeline.stages.train import model_folder, seeds_of
from workers.task_map import Shard, task_map
from workers.tasks.embed import (
    EmbedRequest,
    allocate_layers,
    components_task,
    embed_task,
    layer_file,
    state_file,
    state_task,
)

# Nodes and edges of one task; independent of the workers, so that a rerun finds its shards.
WORK_PER_TASK = 4_000_000


def settings(config: PipelineConfig) -> dict[str, Any]:
    return {"embed": config.embed.model_dump()}


def run(context: StageContext) -> StageResult:
    seeds = seeds_of(context.config)
    peak = 0
    graph = context.inputs["split"].absolute() / "train_graph"
    for done, seed in enumerate(seeds):
        request = EmbedRequest(
            graph=graph,
            features=context.inputs["features"].absolute(),
            positions=context.inputs["encode"].absolute(),
            model=model_folder(context.inputs["train"].absolute(), seed),
            out=model_folder(context.folder.absolute(), seed),
            num_encodings=len(context.config.encodings),
            dtype=context.config.embed.dtype,
        )
        peak = max(peak, embed_graph(context, request, done, len(seeds)))
    nodes = GraphStore.open(graph).num_nodes
    return StageResult(counts={"nodes": nodes, "models": len(seeds)}, peak_memory_bytes=peak)


def embed_graph(context: StageContext, request: EmbedRequest, done: int, total: int) -> int:
    """All layers of one graph; returns the tasks' peak memory."""
    graph = GraphStore.open(request.graph)
    parts = -(-(graph.num_nodes + 2 * graph.num_edges) // WORK_PER_TASK)
    layers, needs_state = allocate_layers(request)
    ranges = graph.balanced_ranges(parts)
    markers = request.out / "done"
    found = task_map(
        context.cluster,
        components_task,
        [Shard("components", {"request": request})],
        markers=markers,
    )
    if needs_state:
        found += task_map(
            context.cluster,
            state_task,
            [
                Shard(f"state-{start}-{stop}", {"request": request, "start": start, "stop": stop})
                for start, stop in ranges
            ],
            markers=markers,
        )
    peak = max(result["peak_memory_bytes"] for result in found)
    for layer in range(layers):
        results = task_map(
            context.cluster,
            embed_task,
            [
                Shard(
                    f"layer-{layer}-{start}-{stop}",
                    {"request": request, "layer": layer, "start": start, "stop": stop},
                )
                for start, stop in ranges
            ],
            markers=markers,
            on_progress=lambda p, layer=layer: context.progress.update(  # type: ignore[misc]
                done + (layer + p.done / p.total) / layers, total, f"layer {layer}"
            ),
        )
        peak = max([peak, *(result["peak_memory_bytes"] for result in results)])
        read = layer_file(request.out, layer - 1) if layer else state_file(request.out)
        read.unlink(missing_ok=True)
    return peak


def embedding_file(out: Path, config: PipelineConfig) -> Path:
    """The last layer's output."""
    return layer_file(out, config.model.layers - 1)


STAGE = Stage("embed", 3, ("features", "split", "encode", "train"), settings, run)
