"""Why the best of the scored pairs have their scores."""

from __future__ import annotations

from typing import Any

from peg_core.explain.explanation import FILE_NAME
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.stage import Stage, StageContext, StageResult
from workers.shard import Shard
from workers.tasks.explaining.best_pairs import ExplainRequest, explain_task

# Pairs that are explained: as many as anybody reads.
MOST_PAIRS = 100


def settings(config: PipelineConfig) -> dict[str, Any]:
    return {"explain": config.score.explain if config.score else "none"}


def enabled(config: PipelineConfig) -> bool:
    return config.score is not None and config.score.explain == "top"


def run(context: StageContext) -> StageResult:
    score, inputs = context.config.score, context.inputs
    assert score is not None  # the stage is enabled only then
    request = ExplainRequest(
        nodes=inputs.node_ids,
        scorer=inputs.best_scorer(graph=score.graph),
        calibration=inputs.calibration(inputs.best_seed),
        features=inputs.features,
        columns=(score.source, score.target),
        score="score" if "score" in score.columns else "logit",
        prior=score.prior,
        most=MOST_PAIRS,
    )
    scores = sorted(inputs.ref("score").folder.glob("part-*.parquet"))
    arguments = {"request": request, "scores": scores, "out": context.folder / FILE_NAME}
    (result,) = context.map(explain_task, [Shard("explain", arguments)])
    return StageResult(counts={"pairs": result["pairs"]})


STAGE = Stage(
    "explain",
    1,
    (
        "ingest",
        "features",
        "split",
        "encode",
        "train",
        "embed",
        "calibrate",
        "encode_all",
        "refit",
        "embed_all",
        "score",
    ),
    settings,
    run,
    enabled=enabled,
)
