"""The same stages on another graph: how a model trained here does there.

The other graph is ingested, split and encoded like the first; the trained model embeds
it, and its test links are ranked. Nothing of it reaches the training.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pipeline.config.data_sections import SplitConfig
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.config.result_sections import CalibrateConfig, EvaluateConfig
from pipeline.run.stage import Stage, StageContext, StageResult
from pipeline.stages import calibrate, embed, encode, evaluate, features, ingest, negatives, split

PREFIX = "other_"
# Taken out beside the test links, so that the parts of a split are all there; not used.
VALID_SHARE = 0.01


def enabled(config: PipelineConfig) -> bool:
    return config.evaluate.on is not None


def other_config(config: PipelineConfig) -> PipelineConfig:
    """The configuration with the other graph instead of the first.

    Nothing is stacked there: the weights would come from links of the other graph.
    """
    assert config.evaluate.on is not None  # the stages are enabled only then
    evaluation: EvaluateConfig = config.evaluate.model_copy(update={"on": None})
    whole = SplitConfig(by="random", valid=VALID_SHARE, test=0.10, folds=1, seed=config.split.seed)
    return config.model_copy(
        update={
            "graph": config.evaluate.on,
            "split": whole,
            "evaluate": evaluation,
            "calibrate": CalibrateConfig(),
        }
    )


def on_other_graph(stage: Stage) -> Stage:
    """The stage that does the same on the other graph; models come from the first."""

    def names() -> dict[str, str]:
        return {name: name if name == "train" else PREFIX + name for name in stage.inputs}

    def run(context: StageContext) -> StageResult:
        inputs = context.inputs.renamed(names())
        return stage.run(replace(context, config=other_config(context.config), inputs=inputs))

    def moved(function: Callable[[PipelineConfig], Any]) -> Callable[[PipelineConfig], Any]:
        return lambda config: function(other_config(config)) if enabled(config) else {}

    def takes_part(config: PipelineConfig) -> bool:
        return enabled(config) and stage.enabled(other_config(config))

    return replace(
        stage,
        name=PREFIX + stage.name,
        inputs=tuple(names().values()),
        settings=moved(stage.settings),
        run=run,
        files=moved(stage.files),
        enabled=takes_part,
    )


STAGES = [
    on_other_graph(stage)
    for stage in (
        ingest.STAGE,
        features.STAGE,
        split.STAGE,
        encode.STAGE,
        embed.STAGE,
        calibrate.STAGE,
        negatives.STAGE,
        evaluate.STAGE,
    )
]
