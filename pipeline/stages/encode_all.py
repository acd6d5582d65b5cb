"""Positions of the nodes in the graph of all known edges, to score with."""

from __future__ import annotations

from pathlib import Path

from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.stage import Stage, StageContext, StageResult
from pipeline.stages.encode import encode_graphs, settings
from workers.tasks.encode import EncodeRequest, WarmStart, positions_file, vectors_file


def enabled(config: PipelineConfig) -> bool:
    return any(
        part is not None and part.graph == "all" for part in (config.score, config.recommend)
    )


def run(context: StageContext) -> StageResult:
    return encode_graphs(context, requests(context))


def requests(
    context: StageContext, start: tuple[Path, Path, int] | None = None
) -> list[EncodeRequest]:
    """One encoding after the other.

    Args:
        start: An earlier artifact, its graph, and the nodes of the graph trained on.
    """
    return [
        EncodeRequest(
            kind=item.kind,
            parameters=item.parameters,
            seed=item.seed,
            graph=context.inputs["ingest"].absolute(),
            out=positions_file(context.folder.absolute(), number),
            keep_vectors=True,
            start=_warm_start(number, *start) if start else None,
        )
        for number, item in enumerate(context.config.encodings)
    ]


def _warm_start(number: int, earlier: Path, graph: Path, trained_nodes: int) -> WarmStart:
    vectors = vectors_file(positions_file(earlier.absolute(), number))
    return WarmStart(vectors, graph.absolute(), trained_nodes)


STAGE = Stage("encode_all", 1, ("ingest",), settings, run, enabled=enabled)
