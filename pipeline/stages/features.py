"""What a model reads of the nodes: their own features made ready, or what stands in for them."""

from __future__ import annotations

from typing import Any

from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.stage import Stage, StageContext, StageResult
from workers.tasks.features import FeatureRequest, build_features


def settings(config: PipelineConfig) -> dict[str, Any]:
    return {"features": config.features.model_dump()}


def run(context: StageContext) -> StageResult:
    facts = build_features(context.cluster, feature_request(context), context.progress.update)
    return StageResult(
        peak_memory_bytes=facts.pop("peak_memory_bytes"),
        details={"variances": facts.pop("variances", [])},
        counts=facts,
    )


def feature_request(context: StageContext) -> FeatureRequest:
    """The features of the ingested graph, as the configuration wants them."""
    features = context.config.features
    return FeatureRequest(
        graph=context.inputs["ingest"].absolute(),
        out=context.folder.absolute(),
        kind=kind_of(context.config),
        standardise=features.standardise,
        row_normalise=features.row_normalise,
        reduce=features.reduce,
        dimensions=features.dimensions,
        seed=features.seed,
    )


def kind_of(config: PipelineConfig) -> str:
    """The kind of features, with ``auto`` decided by what the graph has."""
    if config.features.kind != "auto":
        return config.features.kind
    return "node" if config.graph.features else "degree"


STAGE = Stage("features", 1, ("ingest",), settings, run)
