"""Positions of the nodes in the graph of all known edges, to score with."""

from __future__ import annotations

from peg_core.artifacts.positions import Positions
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.stage import Stage, StageContext, StageResult
from pipeline.stages.encode import encode_graphs, settings
from workers.tasks.encode import EncodeRequest, WarmStart


def enabled(config: PipelineConfig) -> bool:
    return any(
        part is not None and part.graph == "all" for part in (config.score, config.recommend)
    )


def run(context: StageContext) -> StageResult:
    return encode_graphs(context, requests(context))


def requests(context: StageContext, start: WarmStart | None = None) -> list[EncodeRequest]:
    """One encoding after the other, each from where an earlier one was if there is one."""
    return [
        EncodeRequest(
            kind=item.kind,
            parameters=item.parameters,
            seed=item.seed,
            out=context.out.at(Positions),
            encoding=number,
            graph=context.inputs.graph,
            keep_vectors=True,
            start=start,
        )
        for number, item in enumerate(context.config.encodings)
    ]


STAGE = Stage("encode_all", 1, ("ingest",), settings, run, enabled=enabled)
