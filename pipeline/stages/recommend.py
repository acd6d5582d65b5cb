"""The best new partners of every node, or of those that were asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from peg_core.graph.edge_table import (
    find_parquet_files,
    open_parquet,
)
from peg_core.graph.graph_outline import GraphOutline
from peg_core.graph.ids.graph_ids import GraphIds
from peg_core.graph.ids.id_types import joint_id_type
from peg_core.inference.list_side import BOTH, ListSide
from peg_core.random_streams import random_stream
from pipeline.config.graph_section import GraphConfig
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.config.result_sections import RecommendConfig
from pipeline.run.stage import Stage, StageContext, StageResult
from pipeline.stages.index import enabled
from workers.shard import Shard
from workers.tasks.recommend import RecommendRequest, recall_task, recommend_task
from workers.tasks.recommending.asked_nodes import AskedNodes, AskedResult, asked_task
from workers.tasks.recommending.condition_tables import (
    ConditionFiles,
    allowed_task,
    excluded_task,
)

# Up to this many nodes recall is measured unasked: scoring a node with all is quick.
MEASURED_NODES, SAMPLE = 20_000, 200
SAMPLE_PER_TASK = 25


def settings(config: PipelineConfig) -> dict[str, Any]:
    recommend = config.recommend
    # other indexes are another input already
    return {"recommend": recommend.dependencies(exclude={"index_dtype"}) if recommend else None}


def files(config: PipelineConfig) -> dict[str, str]:
    recommend = config.recommend
    if recommend is None:
        return {}
    tables = {
        "recommend.nodes": recommend.nodes,
        "recommend.allowed": recommend.allowed and recommend.allowed.files,
        "recommend.exclude": recommend.exclude and recommend.exclude.files,
    }
    return {setting: table for setting, table in tables.items() if table}


def run(context: StageContext) -> StageResult:
    recommend = context.config.recommend
    assert recommend is not None  # the stage is enabled only then
    sides = ListSide.of(context.inputs.graph.at(GraphOutline).open(), recommend.made_for)
    conditions, limits = _conditions(context, recommend, sides)
    requests = [
        _request(context, recommend, sides, number, conditions) for number in range(len(sides))
    ]
    asked = _ask(context, recommend, requests)
    results = context.map(
        recommend_task, _shards(context, recommend, requests, asked), note="recommending"
    )
    counts = {
        "nodes": sum(result["nodes"] for result in results),
        "rows": sum(result["rows"] for result in results),
        "short": sum(result["short"] for result in results),
        "unknown": sum(found["unknown"] for found in asked),
        "files": len(results),
        **limits,
    }
    if recommend.least_score is not None:
        counts["below_least_score"] = sum(result["low"] for result in results)
    recall = _measure_recall(context, requests, [found["nodes"] for found in asked])
    return StageResult(
        counts=counts | ({"recall": recall["mean"]} if recall else {}),
        details={"recall": recall},
        warnings=_warnings(recommend, counts),
    )


def _request(
    context: StageContext,
    recommend: RecommendConfig,
    sides: list[ListSide],
    number: int,
    conditions: ConditionFiles,
) -> RecommendRequest:
    name = "asked.npy" if number == 0 else f"asked-{number}.npy"
    return RecommendRequest(
        graph=context.inputs.graph,
        asked=context.folder / name,
        side=sides[number],
        id_types=_id_types(context, sides, number),
        scorer=context.inputs.best_scorer(graph=recommend.graph),
        indexes=context.inputs.indexes,
        calibration=context.inputs.calibration(context.inputs.best_seed),
        top_k=recommend.top_k,
        nearby=recommend.nearby,
        nearest=recommend.nearest,
        names_kind=recommend.made_for == BOTH,
        conditions=conditions,
        least_score=recommend.least_score,
    )


def _id_types(
    context: StageContext, sides: list[ListSide], number: int
) -> tuple[pa.DataType, pa.DataType]:
    """What ids of nodes and of candidates are written as; where a column has two kinds, as one."""
    stored = GraphIds.stored_types(context.inputs.graph.folder)
    source, target = (
        _original_type(context.config.graph, kind) or own
        for kind, own in zip(context.config.graph.predicted.kinds, stored, strict=True)
    )
    if len(sides) > 1 and source != target:
        source, target = stored
        source = target = joint_id_type((source, target))
    return (target, source) if sides[number].turned else (source, target)


def _conditions(
    context: StageContext, recommend: RecommendConfig, sides: list[ListSide]
) -> tuple[ConditionFiles, dict[str, int]]:
    """What may be recommended, and what the tables that say so have and the graph has not."""
    counts: dict[str, int] = {}
    allowed = excluded = None
    if recommend.allowed is not None:
        allowed, table = context.folder / "allowed.npy", recommend.allowed
        # with lists of both kinds: those of the target
        arguments = {
            "nodes": context.inputs.node_ids,
            "table": table.files,
            "column": table.column,
            "side": sides[0],
            "out": allowed,
        }
        (found,) = context.map(allowed_task, [Shard("allowed", arguments)], note="allowed nodes")
        counts |= {"allowed": found["known"], "unknown_allowed": found["unknown"]}
    if recommend.exclude is not None:
        excluded, pairs = context.folder / "excluded.npy", recommend.exclude
        arguments = {
            "graph": context.inputs.graph,
            "table": pairs.files,
            "columns": (pairs.source, pairs.target),
            "out": excluded,
        }
        (found,) = context.map(excluded_task, [Shard("excluded", arguments)], note="exclusions")
        counts |= {"excluded": found["known"], "unknown_excluded": found["unknown"]}
    return ConditionFiles(allowed, excluded), counts


def _ask(
    context: StageContext, recommend: RecommendConfig, requests: list[RecommendRequest]
) -> list[AskedResult]:
    """Look up the nodes of every side."""
    shards = []
    for request in requests:
        wanted = AskedNodes(
            recommend.nodes,
            recommend.column,
            recommend.on_unknown == "error",
            context.inputs.node_ids,
            request.asked,
            request.side,
        )
        shards.append(Shard(request.asked.stem, {"wanted": wanted}))
    return context.map(asked_task, shards, note="nodes")


def _shards(
    context: StageContext,
    recommend: RecommendConfig,
    requests: list[RecommendRequest],
    asked: list[AskedResult],
) -> list[Shard]:
    """Files of so many nodes each, numbered through all sides."""
    size = recommend.shard_nodes
    ranges = [
        (request, start, min(start + size, found["nodes"]))
        for request, found in zip(requests, asked, strict=True)
        for start in range(0, found["nodes"], size)
    ]
    return [
        Shard(
            f"part-{number:06}",
            {
                "request": request,
                "start": start,
                "stop": stop,
                "out": context.folder / f"part-{number:06}.parquet",
            },
        )
        for number, (request, start, stop) in enumerate(ranges)
    ]


def _original_type(graph: GraphConfig, kind_of_node: str) -> pa.DataType | None:
    """The type that ids of a kind have in the input, where all files agree on a plain one."""
    columns = [
        (file, name)
        for relation in graph.relations
        for name, kind in zip(relation.ends, relation.kinds, strict=True)
        if kind == kind_of_node
        for file in find_parquet_files(relation.files)
    ]
    if kind_of_node in graph.node_tables:
        table = graph.node_tables[kind_of_node]
        columns += [(file, table.id) for file in find_parquet_files(table.files)]
    kinds = {open_parquet(file).schema_arrow.field(name).type for file, name in columns}
    kind = kinds.pop()
    plain = pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_binary(kind)
    return kind if not kinds and plain else None


def _measure_recall(
    context: StageContext, requests: list[RecommendRequest], asked: list[int]
) -> dict[str, Any] | None:
    """Mean recall of a sample of the nodes of every side against exhaustive scoring."""
    recommend = context.config.recommend
    assert recommend is not None
    wanted = recommend.measure_recall
    if wanted is None:
        nodes = requests[0].graph.at(GraphOutline).open().num_nodes
        wanted = SAMPLE if nodes <= MEASURED_NODES else 0
    if not wanted:
        return None
    rng = random_stream(seed=0, purpose="recall sample")
    shards: list[Shard] = []
    for request, count in zip(requests, asked, strict=True):
        sample = np.sort(rng.choice(count, min(wanted, count), replace=False)).tolist()
        prefix = request.asked.stem.replace("asked", "recall")
        shards += [
            Shard(
                f"{prefix}-{start:06}",
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
            + (" (or allow more nodes)" if recommend.allowed else "")
        )
    for name, table, what in (
        ("unknown_allowed", recommend.allowed, "id(s)"),
        ("unknown_excluded", recommend.exclude, "pair(s)"),
    ):
        if table is not None and counts[name]:
            warnings.append(
                f"{counts[name]:,} {what} in {table.files} name no node of the graph (or null): "
                "they were left out"
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
