"""Links set aside for validation and test; folds of the rest."""

from __future__ import annotations

from typing import Any

from peg_core.splits.split_store import SplitStore
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.stage import Stage, StageContext, StageResult
from workers.task_map import Shard
from workers.tasks.split import SplitRequest, split_task


def settings(config: PipelineConfig) -> dict[str, Any]:
    return {"split": config.split.model_dump()}


def files(config: PipelineConfig) -> dict[str, str]:
    split = config.split
    given = {
        "split.valid_edges": split.valid_edges,
        "split.test_edges": split.test_edges,
        "split.valid_negatives": split.valid_negatives,
        "split.test_negatives": split.test_negatives,
    }
    return {name: location for name, location in given.items() if location}


def run(context: StageContext) -> StageResult:
    split = context.config.split
    request = SplitRequest(
        by=split.by,
        valid=split.valid,
        test=split.test,
        folds=split.folds,
        seed=split.seed,
        given_links={"valid": split.valid_edges, "test": split.test_edges},
        given_negatives={"valid": split.valid_negatives, "test": split.test_negatives},
        columns=(context.config.graph.source, context.config.graph.target),
        graph=context.inputs.graph,
        out=context.out.at(SplitStore),
    )
    shard = Shard("split", {"request": request})
    (counts,) = context.map(split_task, [shard], note="splitting")
    return StageResult(counts=counts)


STAGE = Stage("split", 3, ("ingest",), settings, run, files)
