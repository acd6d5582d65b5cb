"""What a model reads of the nodes: their own features made ready, or what stands in for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from peg_core.atomic_file import copy_file
from peg_core.errors import InputError
from peg_core.graph.feature_transform import FeatureTransform
from peg_core.graph.graph_outline import GraphOutline
from peg_core.graph.node_features import DEGREE_WIDTH, TABLE_KINDS, NodeFeatures
from peg_core.storage.shared_array import create_array
from peg_core.storage.stored_path import remove
from pipeline.config.pipeline_config import PipelineConfig
from pipeline.run.stage import Stage, StageContext, StageResult
from workers.shard import Shard
from workers.tasks.features import (
    FeatureRequest,
    Range,
    fill_task,
    fit_task,
    moments_task,
    raw_width,
)

# Values of one task; independent of the workers, so that a rerun finds its shards.
VALUES_PER_TASK = 2**28
# The table of one-hot features has this many rows and columns at most, 1.6 GB.
MAX_ONE_HOT_NODES = 20_000
# A covariance matrix has this many rows and columns at most, 0.8 GB.
MAX_PCA_WIDTH = 10_000


def settings(config: PipelineConfig) -> dict[str, Any]:
    return {"features": config.features.dependencies()}


def run(context: StageContext) -> StageResult:
    facts = build_features(context, feature_request(context))
    return StageResult(details={"variances": facts.pop("variances", [])}, counts=facts)


def feature_request(context: StageContext) -> FeatureRequest:
    """The features of the ingested graph, as the configuration wants them."""
    features = context.config.features
    return FeatureRequest(
        graph=context.inputs.graph,
        out=context.out.at(NodeFeatures),
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
    return "node" if config.graph.has_features else "degree"


def build_features(context: StageContext, request: FeatureRequest) -> dict[str, Any]:
    """Fit what has to be fitted, then write the table; returns facts for the manifest."""
    facts: dict[str, Any] = {"kind": request.kind}
    if request.kind in TABLE_KINDS:
        facts |= _build_table(context, request)
    elif request.kind == "degree":
        facts["width"] = DEGREE_WIDTH
    learned = request.dimensions if request.kind == "learned" else 0
    if learned:
        facts["width"] = learned
    NodeFeatures.save_kind(request.kind, request.out.folder, learned_width=learned)
    return facts


def _build_table(context: StageContext, request: FeatureRequest) -> dict[str, Any]:
    num_nodes = request.graph.at(GraphOutline).open().num_nodes
    raw_width, width = _widths(request, num_nodes)
    ranges = _ranges(num_nodes, max(raw_width, width))
    facts: dict[str, Any] = {"width": width}
    if request.kind in ("node", "node+positional"):
        facts["input_width"] = raw_width
        if request.fitted is None:
            facts |= _fit(context, request, ranges, raw_width)
        else:
            copy_file(request.fitted, request.transform)
    create_array(request.table, (num_nodes, width), np.float32)
    context.map(fill_task, _shards(request, "fill", ranges), note="fill")
    remove(request.work)
    return facts


def _fit(
    context: StageContext, request: FeatureRequest, ranges: list[Range], width: int
) -> dict[str, Any]:
    """The steps of the transform one after the other, each fitted to what the last one left."""
    if not request.transform.exists():
        FeatureTransform(request.row_normalise).save(request.transform)
    steps = ["scale"] if request.standardise else []
    steps += [request.reduce] if _is_reduced(request, width) else []
    facts: dict[str, Any] = {}
    for step in steps:
        needed = [] if step == "random" else ranges
        context.map(moments_task, _shards(request, step, needed), note=step)
        arguments = {"request": request, "step": step, "ranges": needed}
        (fitted,) = context.map(fit_task, [Shard(f"fit-{step}", arguments)], note=step)
        facts |= fitted
    return facts


def _shards(request: FeatureRequest, step: str, ranges: Sequence[Range]) -> list[Shard]:
    return [
        Shard(f"{step}-{start}-{stop}", {"request": request, "step": step, "rows": (start, stop)})
        for start, stop in ranges
    ]


def _widths(request: FeatureRequest, num_nodes: int) -> tuple[int, int]:
    """Columns of the features that are read, and of those that are written."""
    if request.kind == "random":
        return 0, request.dimensions
    if request.kind == "one_hot":
        if num_nodes > MAX_ONE_HOT_NODES:
            raise InputError(
                f"one-hot features of {num_nodes:,} nodes would be a table of as many columns, at "
                f"most {MAX_ONE_HOT_NODES:,} are allowed; set `features.kind` to random or degree"
            )
        return 0, num_nodes
    width = raw_width(request)
    if not _is_reduced(request, width):
        return width, width
    if request.reduce == "pca" and width > MAX_PCA_WIDTH:
        raise InputError(
            f"the features are {width:,} wide, principal components are found for at most "
            f"{MAX_PCA_WIDTH:,} columns; set `features.reduce` to random or none"
        )
    return width, request.dimensions


def _is_reduced(request: FeatureRequest, width: int) -> bool:
    return request.reduce != "none" and width > request.dimensions


def _ranges(num_nodes: int, width: int) -> list[Range]:
    rows = max(1, VALUES_PER_TASK // width)
    return [(first, min(first + rows, num_nodes)) for first in range(0, num_nodes, rows)]


STAGE = Stage("features", 1, ("ingest",), settings, run)
