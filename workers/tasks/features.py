"""Node features as Ray tasks: ranges of rows in, one memory-mapped table out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TypedDict

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
    NodeFeatures,
    features_width,
    load_features,
    table_file,
    transform_file,
)
from peg_core.random_streams import random_stream
from peg_core.storage.shared_array import write_rows
from workers.artifact_ref import ArtifactRef

Range = tuple[int, int]


class NoResult(TypedDict):
    """Nothing to tell."""


class FitResult(TypedDict, total=False):
    """What principal components explain."""

    explained_variance: float
    variances: list[float]


@dataclass(frozen=True)
class FeatureRequest:
    """Which features, made of what.

    Args:
        graph: The ingested graph, with the features of its node table.
        out: Where they go.
        kind: One of :data:`peg_core.graph.node_features.FEATURE_KINDS`.
        standardise: Give columns mean 0 and deviation 1.
        row_normalise: Give rows length 1.
        reduce: ``pca``, ``random`` or ``none``, where rows are wider than ``dimensions``.
        dimensions: Width after the reduction, and of random features.
        seed: Of random features and random projections.
        fitted: A transform that was fitted to another graph, used instead of a new one.
    """

    graph: ArtifactRef[GraphStore]
    out: ArtifactRef[NodeFeatures]
    kind: str
    standardise: bool = False
    row_normalise: bool = True
    reduce: str = "pca"
    dimensions: int = 128
    seed: int = 0
    fitted: Path | None = None

    @property
    def transform(self) -> Path:
        return transform_file(self.out.folder)

    @property
    def table(self) -> Path:
        return table_file(self.out.folder)

    @property
    def work(self) -> Path:
        return self.out.folder / "work"

    def moments(self, step: str, rows: Range) -> Path:
        return self.work / f"{step}-{rows[0]}-{rows[1]}.safetensors"


def moments_task(request: FeatureRequest, step: str, rows: Range) -> NoResult:
    """Moments of some rows, as far as they are transformed before ``step``."""
    features = node_features(request)
    transform = FeatureTransform()
    if step == "pca":
        transform = FeatureTransform.open(request.transform)
    moments = moments_of(features, transform, *rows, products=step == "pca")
    moments.save(request.moments(step, rows))
    return {}


def fit_task(request: FeatureRequest, step: str, ranges: Sequence[Range]) -> FitResult:
    """Add one step to the transform; doing it twice changes nothing."""
    transform = FeatureTransform.open(request.transform)
    parts = (Moments.open(request.moments(step, rows)) for rows in ranges)
    facts: FitResult = {}
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
        width = raw_width(request)
        components = random_projection(width, request.dimensions, seed=request.seed)
        transform = replace(transform, components=components)
    transform.save(request.transform)
    return facts


def fill_task(request: FeatureRequest, step: str, rows: Range) -> NoResult:
    """Some rows of the table; doing it twice changes nothing."""
    del step
    for first, values in _blocks(request, rows):
        write_rows(request.table, first, values)
    return {}


def _blocks(request: FeatureRequest, rows: Range) -> Iterator[tuple[int, npt.NDArray[np.float32]]]:
    """Some rows of the table, some at a time, each with the number of its first row."""
    if request.kind == "one_hot":
        num_nodes = request.graph.open().num_nodes
        for chunk in row_chunks(*rows, num_nodes):
            yield chunk.start, np.eye(chunk.stop - chunk.start, num_nodes, chunk.start, np.float32)
    elif request.kind == "random":
        rng = random_stream(seed=request.seed, purpose="random features", shard=rows[0])
        for chunk in row_chunks(*rows, request.dimensions):
            shape = (chunk.stop - chunk.start, request.dimensions)
            yield chunk.start, rng.random(shape, dtype=np.float32)
    else:
        features = node_features(request)
        transform = FeatureTransform.open(request.transform)
        for chunk in row_chunks(*rows, features.shape[1]):
            yield chunk.start, transform.apply(features[chunk])


def raw_width(request: FeatureRequest) -> int:
    """Columns of the graph's own node table; a graph without any is refused."""
    width = features_width(request.graph.folder)
    if width is None:
        raise _no_features(request)
    return width


def node_features(request: FeatureRequest) -> npt.NDArray[np.float32]:
    """Of the graph's own node table; a graph without any is refused."""
    features = load_features(request.graph.folder)
    if features is None:
        raise _no_features(request)
    return features


def _no_features(request: FeatureRequest) -> InputError:
    return InputError(
        f"the graph has no node features, `features.kind: {request.kind}` needs them; "
        "set `graph.nodes` and `graph.features`, or another kind"
    )
