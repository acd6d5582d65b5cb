"""The pipeline, in order: reading this file is reading the pipeline."""

from pipeline.run.stage import Stage
from pipeline.stages import (
    calibrate,
    embed,
    embed_all,
    encode,
    encode_all,
    evaluate,
    explain,
    features,
    index,
    ingest,
    negatives,
    other_graph,
    recommend,
    refit,
    report,
    score,
    split,
    train,
)

STAGES: dict[str, Stage] = {
    stage.name: stage
    for stage in (
        ingest.STAGE,
        features.STAGE,
        split.STAGE,
        encode.STAGE,
        train.STAGE,
        embed.STAGE,
        calibrate.STAGE,
        negatives.STAGE,
        evaluate.STAGE,
        *other_graph.STAGES,
        encode_all.STAGE,
        *refit.STAGES,
        embed_all.STAGE,
        score.STAGE,
        explain.STAGE,
        index.STAGE,
        recommend.STAGE,
        report.STAGE,
    )
}

__all__ = ["STAGES"]
