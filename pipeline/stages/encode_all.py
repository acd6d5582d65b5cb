"""Positions of the nodes in the graph of all known edges, to score with."""

from __future__ import annotations

from pipeline.config import PipelineConfig
from pipeline.stage import Stage, StageContext, StageResult
from pipeline.stages.encode import encode_graphs, settings
from workers.encode_tasks import EncodeRequest, positions_file


def enabled(config: PipelineConfig) -> bool:
    return any(
        part is not None and part.graph == "all" for part in (config.score, config.recommend)
    )


def run(context: StageContext) -> StageResult:
    requests = [
        EncodeRequest(
            kind=item.kind,
            parameters=item.parameters,
            seed=item.seed,
            graph=context.inputs["ingest"].absolute(),
            out=positions_file(context.folder.absolute(), number),
        )
        for number, item in enumerate(context.config.encodings)
    ]
    return encode_graphs(context, requests)


STAGE = Stage("encode_all", 1, ("ingest",), settings, run, enabled=enabled)
