"""Nearest-neighbour indexes of positions and embeddings, to recommend with."""

from __future__ import annotations

from typing import Any

from peg_core.artifacts.vector_indexes import (
    ROWS_PER_SHARD,
    IndexPart,
    VectorIndexes,
    vector_width,
)
from peg_core.graph.graph_outline import GraphOutline
from peg_core.inference.list_side import ListSide
from peg_core.inference.vector_code import IndexDtype
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.config.result_sections import RecommendConfig
from pipeline.run.stage import Stage, StageContext, StageResult
from workers.embedded_graph_ref import EmbeddedGraphRef
from workers.shard import Shard
from workers.tasks.index import build_index_task


def settings(config: PipelineConfig) -> dict[str, Any]:
    recommend = config.recommend
    if recommend is None:
        return {"graph": None}
    # `auto` is how indexes were always chosen: those of older stores stay in use
    chosen = {} if recommend.index_dtype == "auto" else {"index_dtype": recommend.index_dtype}
    other_rows = {} if recommend.made_for is None else {"for": recommend.made_for}
    return {"graph": recommend.graph, **chosen, **other_rows}


def enabled(config: PipelineConfig) -> bool:
    return config.recommend is not None


def run(context: StageContext) -> StageResult:
    recommend = context.config.recommend
    assert recommend is not None  # the stage is enabled only then
    embedded = context.inputs.best_scorer(graph=recommend.graph).embedded
    num_nodes = embedded.graph.at(GraphOutline).open().num_nodes
    dtype = _dtype(recommend, num_nodes)
    sides = ListSide.of(context.inputs.graph.at(GraphOutline).open(), recommend.made_for)
    names = VectorIndexes.names(len(context.config.encodings))
    parts = [
        part
        for rows in (side.rows(num_nodes) for side in sides)
        for name in names
        for part in VectorIndexes.parts(name, num_nodes, dtype, most=ROWS_PER_SHARD, rows=rows)
    ]
    out = context.out.at(VectorIndexes)
    shards = [Shard(part.stem, {"embedded": embedded, "out": out, "part": part}) for part in parts]
    results = context.map(
        build_index_task, shards, note="indexes", memory_bytes=_memory(context, embedded, parts)
    )
    return StageResult(
        counts={
            "indexes": len(names) * len(sides),
            "rows": sum(result["rows"] for result in results) // len(names),
            "bytes": sum(result["bytes"] for result in results),
        },
        details={"dtype": dtype, "shards": len(parts) // len(names)},
    )


def _dtype(recommend: RecommendConfig, num_nodes: int) -> IndexDtype:
    """Large indexes have to fit into memory; small ones are as exact as their vectors."""
    if recommend.index_dtype != "auto":
        return recommend.index_dtype
    return "float32" if num_nodes <= ROWS_PER_SHARD else "float16"


def _memory(context: StageContext, embedded: EmbeddedGraphRef, parts: list[IndexPart]) -> int:
    """What the largest task takes, and no less than what the cluster gives to any."""
    positions, embeddings = embedded.positions.open(), embedded.embeddings.open()
    needed = (part.build_bytes(vector_width(part.name, positions, embeddings)) for part in parts)
    return max(context.tasks.settings.task_memory_bytes, *needed)


STAGE = Stage(
    "index",
    1,
    ("ingest", "split", "encode", "train", "embed", "encode_all", "refit", "embed_all"),
    settings,
    run,
    enabled=enabled,
)
