"""The best new partners of every node, or of those that were asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from peg_core.atomic_file import write_array
from peg_core.errors import InputError
from peg_core.graph.edge_table import (
    find_id_type,
    find_parquet_files,
    list_row_groups,
    open_parquet,
    read_row_group,
)
from peg_core.graph.id_types import normalise_ids
from peg_core.graph.node_ids import NodeIds
from peg_core.random_streams import random_stream
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.config.result_sections import RecommendConfig
from pipeline.run.stage import Stage, StageContext, StageResult
from pipeline.stages.index import enabled
from workers.task_map import Shard
from workers.tasks.recommend import RecommendRequest, recall_task, recommend_task

# Up to this many nodes recall is measured unasked: scoring a node with all is quick.
MEASURED_NODES, SAMPLE = 20_000, 200
SAMPLE_PER_TASK = 25


def settings(config: PipelineConfig) -> dict[str, Any]:
    return {"recommend": config.recommend.model_dump() if config.recommend else None}


def files(config: PipelineConfig) -> dict[str, str]:
    nodes = config.recommend.nodes if config.recommend else None
    return {"recommend.nodes": nodes} if nodes else {}


def run(context: StageContext) -> StageResult:
    recommend = context.config.recommend
    assert recommend is not None  # the stage is enabled only then
    folder = context.folder
    node_ids = context.inputs.node_ids.open()
    asked, unknown = _asked_nodes(recommend, node_ids)
    request = _request(context, recommend, node_ids.values.type)
    write_array(request.asked, asked)
    size = recommend.shard_nodes
    shards = [
        Shard(
            f"part-{number:06}",
            {
                "request": request,
                "start": start,
                "stop": min(start + size, len(asked)),
                "out": str(folder / f"part-{number:06}.parquet"),
            },
        )
        for number, start in enumerate(range(0, len(asked), size))
    ]
    results = context.map(recommend_task, shards, note="recommending")
    counts = {
        "nodes": sum(result["nodes"] for result in results),
        "rows": sum(result["rows"] for result in results),
        "short": sum(result["short"] for result in results),
        "unknown": unknown,
        "files": len(results),
    }
    recall = _measure_recall(context, request, asked)
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


def _asked_nodes(
    recommend: RecommendConfig, node_ids: NodeIds
) -> tuple[npt.NDArray[np.int64], int]:
    """Indices of the nodes to recommend for, each once, and how many ids are unknown."""
    if recommend.nodes is None:
        return np.arange(len(node_ids)), 0
    found = find_parquet_files(recommend.nodes)
    groups = list_row_groups(found, [recommend.column])
    if not groups:
        raise InputError.no_rows(recommend.nodes, "nodes")
    find_id_type((file, [recommend.column]) for file in found)
    parts = []
    for group in groups:
        ids = read_row_group(group, [recommend.column])[recommend.column]
        index = node_ids.lookup(normalise_ids(ids))
        if recommend.on_unknown == "error" and (index < 0).any():
            row = int((index < 0).argmax())
            raise InputError(
                f"column {recommend.column!r} of {group.file} names the node {ids[row]} in row "
                f"{row:,} of row group {group.index}, the graph has no such node; remove it, or "
                "set `recommend.on_unknown: drop`"
            )
        parts.append(index)
    asked = np.concatenate(parts)
    known = asked[asked >= 0]
    if not len(known):
        raise InputError(
            f"none of the {len(asked):,} ids in {recommend.nodes} is a node of the graph; "
            f"check that {recommend.column!r} holds the ids that the edges use"
        )
    _, first = np.unique(known, return_index=True)
    return known[np.sort(first)], len(asked) - len(known)


def _original_type(config: PipelineConfig) -> pa.DataType | None:
    """The type that ids have in the input, where all files agree on a plain one."""
    graph = config.graph
    columns = [
        (file, name)
        for file in find_parquet_files(graph.edges)
        for name in (graph.source, graph.target)
    ]
    if graph.nodes is not None:
        columns += [(file, graph.node_id) for file in find_parquet_files(graph.nodes)]
    kinds = {open_parquet(file).schema_arrow.field(name).type for file, name in columns}
    kind = kinds.pop()
    plain = pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_binary(kind)
    return kind if not kinds and plain else None


def _measure_recall(
    context: StageContext, request: RecommendRequest, asked: npt.NDArray[np.int64]
) -> dict[str, Any] | None:
    """Mean recall of a sample of the nodes against exhaustive scoring."""
    recommend = context.config.recommend
    assert recommend is not None
    wanted = recommend.measure_recall
    if wanted is None:
        nodes = request.graph.open().num_nodes
        wanted = SAMPLE if nodes <= MEASURED_NODES else 0
    if not wanted:
        return None
    rng = random_stream(seed=0, purpose="recall sample")
    sample = np.sort(rng.choice(asked, min(wanted, len(asked)), replace=False)).tolist()
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
        "ingest", "split", "encode", "train", "embed", "calibrate", "encode_all", "embed_all",
        "index",
    ),
    settings,
    run,
    files,
    enabled,
)  # fmt: skip
