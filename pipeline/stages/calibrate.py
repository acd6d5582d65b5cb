"""From logits to probabilities: a line fitted to the validation pairs, for every model.

A stage of its own, so that scoring does not wait for evaluation, nor depend on test pairs.
"""

from __future__ import annotations

from typing import Any

from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.stage import Stage, StageContext, StageResult
from pipeline.stages.embed import embedding_file
from pipeline.stages.train import model_folder, seeds_of
from workers.task_map import Shard, task_map
from workers.tasks.calibrate import calibrate_task
from workers.tasks.model_scorer import ScorerRequest


def settings(config: PipelineConfig) -> dict[str, Any]:
    del config
    return {}


def run(context: StageContext) -> StageResult:
    graph = context.config.graph
    seeds = seeds_of(context.config)
    folder = context.folder.absolute()
    results = task_map(
        context.cluster,
        calibrate_task,
        [
            Shard(
                f"seed-{seed}",
                {
                    "scorer": train_graph_scorer(context, seed),
                    "split": context.inputs["split"].absolute(),
                    "nodes": context.inputs["ingest"].absolute(),
                    "columns": (graph.source, graph.target),
                    "out": model_folder(folder, seed),
                },
            )
            for seed in seeds
        ],
        markers=folder / "done",
        on_progress=lambda p: context.progress.update(p.done, p.total, "models"),
    )
    peak = max(result.pop("peak_memory_bytes") for result in results)
    return StageResult(
        counts={key: results[0][key] for key in ("pairs", "slope", "intercept", "error")},
        details={"seeds": dict(zip(map(str, seeds), results, strict=True))},
        peak_memory_bytes=peak,
    )


def train_graph_scorer(context: StageContext, seed: int) -> ScorerRequest:
    """A model over the training graph, as validation and test see it."""
    inputs = {name: path.absolute() for name, path in context.inputs.items()}
    return ScorerRequest(
        graph=inputs["split"] / "train_graph",
        positions=inputs["encode"],
        model=model_folder(inputs["train"], seed),
        embeddings=embedding_file(model_folder(inputs["embed"], seed), context.config),
        num_encodings=len(context.config.encodings),
    )


STAGE = Stage("calibrate", 1, ("ingest", "split", "encode", "train", "embed"), settings, run)
