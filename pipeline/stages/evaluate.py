"""How well the models rank the test links, beside heuristics that need no training."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from peg_core.atomic_file import atomic_path
from pipeline.config import PipelineConfig
from pipeline.stage import Stage, StageContext, StageResult
from pipeline.stages.embed import embedding_file
from pipeline.stages.train import model_folder, seeds_of
from workers.evaluate_tasks import EvaluateRequest, evaluate_heuristics_task, evaluate_model_task
from workers.task_map import Result, Shard, task_map


def settings(config: PipelineConfig) -> dict[str, Any]:
    return {"evaluate": config.evaluate.model_dump()}


def run(context: StageContext) -> StageResult:
    config = context.config
    seeds = seeds_of(config)
    markers = context.folder.absolute() / "done"
    models = task_map(
        context.cluster,
        evaluate_model_task,
        [Shard(f"seed-{seed}", {"request": _request(context, seed)}) for seed in seeds],
        markers=markers,
        on_progress=lambda p: context.progress.update(p.done, p.total + 1, "models"),
    )
    arguments = {"split": context.inputs["split"].absolute(), "hits": config.evaluate.hits}
    (heuristics,) = task_map(
        context.cluster,
        evaluate_heuristics_task,
        [Shard("heuristics", arguments)],
        markers=markers,
        on_progress=lambda p: context.progress.update(len(seeds) + p.done, len(seeds) + 1),
    )
    peak = max(result.pop("peak_memory_bytes") for result in [*models, heuristics])
    rows = [_model_row(config.model.kind, [model["test"] for model in models])]
    rows += [{"method": name, **metrics} for name, metrics in heuristics.items()]
    with atomic_path(context.folder / "metrics.parquet") as temporary:
        pl.DataFrame(rows).write_parquet(temporary)
    return StageResult(
        counts={
            "test_auc": rows[0]["auc"],
            "average_precision": rows[0]["average_precision"],
            "common_neighbours_auc": heuristics["common neighbours"]["auc"],
        },
        details={"seeds": dict(zip(map(str, seeds), models, strict=True)), "table": rows},
        peak_memory_bytes=peak,
    )


def _request(context: StageContext, seed: int) -> EvaluateRequest:
    graph = context.config.graph
    inputs = {name: path.absolute() for name, path in context.inputs.items()}
    return EvaluateRequest(
        graph=inputs["ingest"],
        split=inputs["split"],
        positions=inputs["encode"],
        model=model_folder(inputs["train"], seed),
        embeddings=embedding_file(model_folder(inputs["embed"], seed), context.config),
        num_encodings=len(context.config.encodings),
        hits=context.config.evaluate.hits,
        columns=(graph.source, graph.target),
        out=model_folder(context.folder.absolute(), seed),
    )


def _model_row(kind: str, metrics: list[Result]) -> dict[str, Any]:
    """Mean over the seeds and, where there are several, the deviation."""
    row: dict[str, Any] = {"method": kind}
    for name in metrics[0]:
        values = [metric[name] for metric in metrics]
        row[name] = float(np.mean(values))
        if len(values) > 1:
            row[f"{name}_std"] = float(np.std(values, ddof=1))
    return row


STAGE = Stage("evaluate", 1, ("ingest", "split", "encode", "train", "embed"), settings, run)
