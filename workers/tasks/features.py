"""Node features as Ray tasks: ranges of rows in, one memory-mapped table out."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.errors import InputError
from peg_core.graph.feature_transform import (
    FeatureTransform,
    Moments,
    fit_principal_components,
    fit_scale,
    moments_of,
    random_projection,
    row_chunks,
)
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.node_features import (
    DEGREE_WIDTH,
    TABLE_KINDS,
    NodeFeatures,
    load_features,
)
from peg_core.mapped_array import new_mapped_array
from peg_core.random_streams import random_stream
from workers.cluster import Cluster
from workers.task_map import Result, Shard, TaskProgress, task_map

# Values of one task; independent of the workers, so that a rerun finds its shards.
VALUES_PER_TASK = 2**28
# The table of one-hot features has this many rows and columns at most, 1.6 GB.
MAX_ONE_HOT_NODES = 20_000
# A covariance matrix has this many rows and columns at most, 0.8 GB.
MAX_PCA_WIDTH = 10_000

Notify = Callable[[float, float, str], None]
Range = tuple[int, int]


@dataclass(frozen=True)
class FeatureRequest:
    """Which features, made of what.

    Args:
        graph: The ingested graph, with the features of its node table.
        out: Folder for ``features.json``, ``features.npy`` and ``transform.safetensors``.
        kind: One of :data:`peg_core.graph.node_features.FEATURE_KINDS`.
        standardise: Give columns mean 0 and deviation 1.
        row_normalise: Give rows length 1.
        reduce: ``pca``, ``random`` or ``none``, where rows are wider than ``dimensions``.
        dimensions: Width after the reduction, and of random features.
        seed: Of random features and random projections.
        fitted: A transform that was fitted to another graph, used instead of a new one.
    """

    graph: Path
    out: Path
    kind: str
    standardise: bool = False
    row_normalise: bool = True
    reduce: str = "pca"
    dimensions: int = 128
    seed: int = 0
    fitted: Path | None = None

    @property
    def transform(self) -> Path:
        return self.out / "transform.safetensors"

    def moments(self, step: str, rows: Range) -> Path:
        return self.out / "work" / f"{step}-{rows[0]}-{rows[1]}.safetensors"


def build_features(cluster: Cluster, request: FeatureRequest, notify: Notify) -> Result:
    """Fit what has to be fitted, then write the table; returns facts for the manifest."""
    num_nodes = GraphStore.open(request.graph).num_nodes
    result: Result = {"kind": request.kind, "peak_memory_bytes": 0}
    if request.kind in TABLE_KINDS:
        raw_width, width = _widths(request, num_nodes)
        ranges = _ranges(num_nodes, max(raw_width, width))
        result |= {"width": width}
        if request.kind in ("node", "node+positional"):
            result |= {"input_width": raw_width}
            if request.fitted is None:
                result |= _fit(cluster, request, ranges, raw_width, notify)
            else:
                shutil.copyfile(request.fitted, request.transform)
        _allocate(request.out / "features.npy", (num_nodes, width))
        filled = _map(cluster, fill_task, request, "fill", ranges, notify)
        result["peak_memory_bytes"] = _peak([result, *filled])
        shutil.rmtree(request.out / "work", ignore_errors=True)
    elif request.kind == "degree":
        result |= {"width": DEGREE_WIDTH}
    learned = request.dimensions if request.kind == "learned" else 0
    if learned:
        result |= {"width": learned}
    NodeFeatures.save_kind(request.kind, request.out, learned_width=learned)
    return result


def moments_task(request: FeatureRequest, step: str, rows: Range) -> Result:
    """Moments of some rows, as far as they are transformed before ``step``."""
    features = _node_features(request)
    transform = FeatureTransform()
    if step == "pca":
        transform = FeatureTransform.open(request.transform)
    moments = moments_of(features, transform, *rows, products=step == "pca")
    moments.save(request.moments(step, rows))
    return {}


def fit_task(request: FeatureRequest, step: str, ranges: Sequence[Range]) -> Result:
    """Add one step to the transform; doing it twice changes nothing."""
    transform = FeatureTransform.open(request.transform)
    parts = (Moments.open(request.moments(step, rows)) for rows in ranges)
    facts: Result = {}
    if step == "scale":
        shift, scale = fit_scale(reduce(Moments.merge, parts))
        transform = replace(transform, shift=shift, scale=scale)
    elif step == "pca":
        moments = reduce(Moments.merge, parts)
        components, variances = fit_principal_components(moments, request.dimensions)
        transform = replace(transform, centre=moments.mean, components=components)
        total = float(np.trace(moments.scatter)) / max(moments.count - 1, 1)
        facts["explained_variance"] = float(variances.sum()) / total if total else 1.0
        facts["variances"] = variances.tolist()
    else:
        width = _node_features(request).shape[1]
        components = random_projection(width, request.dimensions, seed=request.seed)
        transform = replace(transform, components=components)
    transform.save(request.transform)
    return facts


def fill_task(request: FeatureRequest, step: str, rows: Range) -> Result:
    """Some rows of the table, written in place; doing it twice changes nothing."""
    del step
    out = np.load(request.out / "features.npy", mmap_mode="r+")
    if request.kind == "one_hot":
        for chunk in row_chunks(*rows, out.shape[1]):
            out[chunk] = 0
        np.einsum("ii->i", out)[slice(*rows)] = 1
    elif request.kind == "random":
        rng = random_stream(seed=request.seed, purpose="random features", shard=rows[0])
        for chunk in row_chunks(*rows, out.shape[1]):
            out[chunk] = rng.random(out[chunk].shape, dtype=np.float32)
    else:
        features = _node_features(request)
        transform = FeatureTransform.open(request.transform)
        for chunk in row_chunks(*rows, features.shape[1]):
            out[chunk] = transform.apply(features[chunk])
    out.flush()
    return {}


def _fit(
    cluster: Cluster, request: FeatureRequest, ranges: list[Range], width: int, notify: Notify
) -> Result:
    """The steps of the transform one after the other, each fitted to what the last one left."""
    if not request.transform.exists():
        FeatureTransform(request.row_normalise).save(request.transform)
    steps = ["scale"] if request.standardise else []
    steps += [request.reduce] if _is_reduced(request, width) else []
    facts: Result = {"peak_memory_bytes": 0}
    for step in steps:
        needed = [] if step == "random" else ranges
        parts = _map(cluster, moments_task, request, step, needed, notify)
        (fitted,) = task_map(
            cluster,
            fit_task,
            [Shard(f"fit-{step}", {"request": request, "step": step, "ranges": needed})],
            markers=request.out / "done",
        )
        facts |= fitted | {"peak_memory_bytes": _peak([facts, fitted, *parts])}
    return facts


def _map(
    cluster: Cluster,
    task: Callable[..., Result],
    request: FeatureRequest,
    step: str,
    ranges: Sequence[Range],
    notify: Notify,
) -> list[Result]:
    def on_progress(progress: TaskProgress) -> None:
        notify(progress.done, progress.total, f"{step} {progress.done}/{progress.total}")

    shards = [
        Shard(f"{step}-{start}-{stop}", {"request": request, "step": step, "rows": (start, stop)})
        for start, stop in ranges
    ]
    return task_map(cluster, task, shards, markers=request.out / "done", on_progress=on_progress)


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
    width = _node_features(request).shape[1]
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


def _node_features(request: FeatureRequest) -> npt.NDArray[np.float32]:
    features = load_features(request.graph)
    if features is None:
        raise InputError(
            f"the graph has no node features, `features.kind: {request.kind}` needs them; "
            "set `graph.nodes` and `graph.features`, or another kind"
        )
    return features


def _ranges(num_nodes: int, width: int) -> list[Range]:
    rows = max(1, VALUES_PER_TASK // width)
    return [(first, min(first + rows, num_nodes)) for first in range(0, num_nodes, rows)]


def _allocate(file: Path, shape: tuple[int, int]) -> None:
    if not file.exists():
        new_mapped_array(file, shape, np.float32).flush()


def _peak(results: Sequence[dict[str, Any]]) -> int:
    return max(int(result["peak_memory_bytes"]) for result in results)
