"""The best new partners of every node, or of those that were asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from peg_core.graph.edge_table import (
    find_parquet_files,
    open_parquet,
)
from peg_core.graph.graph_store import GraphSize
from peg_core.graph.ids.node_ids import NodeIds
from peg_core.random_streams import random_stream
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.config.result_sections import RecommendConfig
from pipeline.run.stage import Stage, StageContext, StageResult
from pipeline.stages.index import enabled
from workers.shard import Shard
from workers.tasks.recommend import (
    AskedNodes,
    RecommendRequest,
    asked_task,
    recall_task,
    recommend_task,
)

# Up to this many nodes recall is measured unasked: scoring a node with all is quick.
MEASURED_NODES, SAMPLE = 20_000, 200
SAMPLE_PER_TASK = 25


def settings(config: PipelineConfig) -> dict[str, Any]:
    recommend = config.recommend
    # other indexes are another input already
    return {"recommend": recommend.dependencies(exclude={"index_dtype"}) if recommend else None}


def files(config: PipelineConfig) -> dict[str, str]:
    nodes = config.recommend.nodes if config.recommend else None
    return {"recommend.nodes": nodes} if nodes else {}


def run(context: StageContext) -> StageResult:
    recommend = context.config.recommend
    assert recommend is not None  # the stage is enabled only then
    folder, nodes = context.folder, context.inputs.node_ids
    request = _request(context, recommend, NodeIds.stored_type(nodes.folder))
    wanted = AskedNodes(
        recommend.nodes, recommend.column, recommend.on_unknown == "error", nodes, request.asked
    )
    (asked,) = context.map(asked_task, [Shard("asked", {"wanted": wanted})], note="nodes")
    size = recommend.shard_nodes
    shards = [
        Shard(
            f"part-{number:06}",
            {
                "request": request,
                "start": start,
                "stop": min(start + size, asked["nodes"]),
                "out": folder / f"part-{number:06}.parquet",
            },
        )
        for number, start in enumerate(range(0, asked["nodes"], size))
    ]
    results = context.map(recommend_task, shards, note="recommending")
    counts = {
        "nodes": sum(result["nodes"] for result in results),
        "rows": sum(result["rows"] for result in results),
        "short": sum(result["short"] for result in results),
        "unknown": asked["unknown"],
        "files": len(results),
    }
    recall = _measure_recall(context, request, asked["nodes"])
    return StageResult(
        counts=counts | ({"recall": recall["mean"]} if recall else {}),
        details={"recall": recall},
        warnings=_warnings(recommend, counts),
    )


def _request(
    context: StageContext, recommend: RecommendConfig, kind: pa.DataType
) -> RecommendRequest:
    return RecommendRequest(
        graph=context.inputs.graph,
        asked=context.folder / "asked.npy",
        id_type=_original_type(context.config) or kind,
        scorer=context.inputs.best_scorer(graph=recommend.graph),
        indexes=context.inputs.indexes,
        calibration=context.inputs.calibration(context.inputs.best_seed),
        top_k=recommend.top_k,
        nearby=recommend.nearby,
        nearest=recommend.nearest,
    )


def _original_type(config: PipelineConfig) -> pa.DataType | None:
    """The type that ids have in the input, where all files agree on a plain one."""
    graph = config.graph
    columns = [
        (file, name)
        for relation in graph.relations
        for file in find_parquet_files(relation.files)
        for name in relation.ends
    ]
    for table in graph.node_tables.values():
        columns += [(file, table.id) for file in find_parquet_files(table.files)]
    kinds = {open_parquet(file).schema_arrow.field(name).type for file, name in columns}
    kind = kinds.pop()
    plain = pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_binary(kind)
    return kind if not kinds and plain else None


def _measure_recall(
    context: StageContext, request: RecommendRequest, asked: int
) -> dict[str, Any] | None:
    """Mean recall of a sample of the nodes against exhaustive scoring."""
    recommend = context.config.recommend
    assert recommend is not None
    wanted = recommend.measure_recall
    if wanted is None:
        nodes = request.graph.at(GraphSize).open().num_nodes
        wanted = SAMPLE if nodes <= MEASURED_NODES else 0
    if not wanted:
        return None
    rng = random_stream(seed=0, purpose="recall sample")
    sample = np.sort(rng.choice(asked, min(wanted, asked), replace=False)).tolist()
    shards = [
        Shard(
            f"recall-{start:06}",
            {"request": request, "sample": sample[start : start + SAMPLE_PER_TASK]},
        )
        for start in range(0, len(sample), SAMPLE_PER_TASK)
    ]
    results = context.map(recall_task, shards, note="measuring recall")
    values = np.array([value for result in results for value in result["recall"]])
    return {"nodes": len(values), "mean": float(values.mean()), "lowest": float(values.min())}


def _warnings(recommend: RecommendConfig, counts: dict[str, int]) -> list[str]:
    warnings = []
    if counts["unknown"]:
        warnings.append(
            f"{counts['unknown']:,} id(s) in {recommend.nodes} are not nodes of the graph "
            "(or null): nothing is recommended for them"
        )
    if counts["short"]:
        warnings.append(
            f"{counts['short']:,} of {counts['nodes']:,} nodes have fewer than "
            f"{recommend.top_k} candidates; raise `recommend.nearby` or `recommend.nearest`"
        )
    return warnings


STAGE = Stage(
    "recommend",
    1,
    (
        "ingest", "split", "encode", "train", "embed", "calibrate", "encode_all", "refit",
        "embed_all", "index",
    ),
    settings,
    run,
    files,
    enabled,
)  # fmt: skip
