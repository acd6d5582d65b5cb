"""Laplacian eigenmaps of one large graph by many tasks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.encoding.laplacian_eigenmaps import AUTO, LaplacianEigenmaps
from peg_core.encoding.spectral.chebyshev_subspace import OVERSAMPLING
from peg_core.encoding.spectral.eigengap import choose_dimensions
from peg_core.encoding.spectral.solver import FLOAT32_TOLERANCE
from peg_core.encoding.spectral.spectrum import Spectrum
from peg_core.storage.shared_array import create_array
from workers.cluster_settings import ClusterSettings
from workers.distributed_encoding.eigenmap_tasks import ColumnPlan, place_task
from workers.distributed_encoding.encoding_steps import EncodingSteps
from workers.distributed_encoding.graph_parts import GraphParts, RestResult, prepare_task, widest
from workers.distributed_encoding.subspace_iteration import IterationState, SubspaceIteration
from workers.distributed_encoding.tiled_matrix import TiledMatrix, TileLayout
from workers.shard import Shard
from workers.task_map import TaskMap
from workers.tasks.encode import EncodeRequest, num_nodes

NULL_VECTOR = -1
# A solver that was asked for by its name runs as it is, in one task.
DISTRIBUTED_SOLVERS = ("auto", "chebyshev")

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class TileSizes:
    """How large the tasks are.

    Args:
        rows: Nodes of a chunk.
        columns: Columns of a block, at most 32.
    """

    rows: int = 2**18
    columns: int = 16


TILE_SIZES = TileSizes()


@dataclass(frozen=True)
class MergedColumns:
    """Which eigenvectors become the columns of the positions.

    Args:
        eigenvalues: Of the columns, and one more where it is known.
        residuals: Of the filled columns.
        large, rest: The columns that the two parts fill; not yet scaled.
    """

    eigenvalues: Array
    residuals: Array
    large: dict[int, int]
    rest: dict[int, int]


def is_large(settings: ClusterSettings, request: EncodeRequest) -> bool:
    """Whether a graph should be encoded by all workers together."""
    if request.kind != "le" or settings.workers == 1:
        return False
    if LaplacianEigenmaps(**request.parameters).solver not in DISTRIBUTED_SOLVERS:
        return False
    return num_nodes(request) > settings.distribute_encoding_above


def encode_large(
    tasks: TaskMap, request: EncodeRequest, *, work: Path, sizes: TileSizes = TILE_SIZES
) -> None:
    """Encode a graph by tasks on tiles; a graph of small components is left alone.

    Args:
        tasks: Of the stage; gets the mark of the encoding when everything is done.
        request: Laplacian eigenmaps of a graph.
        work: Folder for tiles, removed at the end.
        sizes: How large the tasks are.
    """
    steps = EncodingSteps(tasks, request, work)
    if steps.is_done:
        return
    above = tasks.settings.distribute_encoding_above
    arguments = {"request": request, "folder": work, "chunk_rows": sizes.rows, "above": above}
    (prepared,) = steps.map("components", prepare_task, [Shard("prepare", arguments)])
    if prepared["distributed"] is False:
        steps.leave()
        return
    encoder = LaplacianEigenmaps(**request.parameters)
    parts = GraphParts.from_result(request, work, prepared)
    iteration = _iteration(steps, encoder, parts, sizes)
    state = iteration.run()
    columns, dimensions = _choose_columns(encoder, parts, state)
    _place(steps, encoder, parts, iteration.vectors(state), columns, dimensions)
    report = _describe(encoder, parts, state, columns, dimensions)
    steps.finish({"report": report, "leaks": prepared["leaks"], "edges": prepared["edges"]})


def _iteration(
    steps: EncodingSteps, encoder: LaplacianEigenmaps, parts: GraphParts, sizes: TileSizes
) -> SubspaceIteration:
    count = round(OVERSAMPLING * (parts.wanted + parts.extra))
    count = min(count, parts.large_bounds[-1] - 1)
    return SubspaceIteration(
        steps=steps,
        component=parts.component,
        layout=TileLayout(parts.large_bounds, count, sizes.columns),
        wanted=parts.wanted,
        extra=parts.extra,
        tolerance=encoder.tolerance,
        kind="float32" if encoder.tolerance >= FLOAT32_TOLERANCE else "float64",
    )


def _choose_columns(
    encoder: LaplacianEigenmaps, parts: GraphParts, state: IterationState
) -> tuple[MergedColumns, int]:
    """The columns, and how many the positions have."""
    most = int(widest(encoder).dimensions)
    columns = merge_columns(
        state,
        parts.rest,
        dimensions=most,
        null_vector=encoder.choice("null_vectors") == "keep",
        shared=encoder.components == "per_component",
    )
    if encoder.dimensions != AUTO:
        return columns, most
    lowest = encoder.smallest_dimensions
    best = choose_dimensions(columns.eigenvalues, lowest=lowest, highest=most)
    cut = MergedColumns(
        columns.eigenvalues,
        columns.residuals[:best],
        {target: source for target, source in columns.large.items() if target < best},
        {target: source for target, source in columns.rest.items() if target < best},
    )
    return cut, best


def merge_columns(
    state: IterationState,
    rest: RestResult,
    *,
    dimensions: int,
    null_vector: bool,
    shared: bool,
) -> MergedColumns:
    """Order the eigenvectors of both parts.

    Args:
        state: Of the largest component, after the last iteration.
        rest: Of the smaller components: ``eigenvalues`` and ``residuals``, null vectors first
            where they are kept.
        dimensions: Columns of the positions.
        null_vector: Whether null vectors are kept.
        shared: Whether the parts fill the same columns, or compete for them.
    """
    order = np.argsort(state.values, kind="stable")
    sources = [NULL_VECTOR] * null_vector + order.tolist()
    values = np.concatenate([np.zeros(int(null_vector)), np.array(state.values)[order]])
    residuals = np.concatenate([np.zeros(int(null_vector)), np.array(state.residuals)[order]])
    if shared:
        filled = min(len(values), dimensions)
        worst = np.zeros(max(filled, len(rest["residuals"])))
        worst[:filled] = residuals[:filled]
        np.maximum.at(worst, np.arange(len(rest["residuals"])), rest["residuals"])
        return MergedColumns(
            values[: dimensions + 1],
            worst,
            dict(enumerate(sources[:filled])),
            {column: column for column in range(len(rest["residuals"]))},
        )
    # of the rest's last eigenvalue there is no vector; it is never among the first columns
    both = np.concatenate([values, rest["eigenvalues"]])
    chosen = np.argsort(both, kind="stable")[: dimensions + 1]
    firsts = chosen[:dimensions].tolist()
    known = np.concatenate([residuals, rest["residuals"], np.zeros(1)])
    return MergedColumns(
        both[chosen],
        known[firsts],
        {column: sources[i] for column, i in enumerate(firsts) if i < len(values)},
        {column: i - len(values) for column, i in enumerate(firsts) if i >= len(values)},
    )


def _place(
    steps: EncodingSteps,
    encoder: LaplacianEigenmaps,
    parts: GraphParts,
    vectors: TiledMatrix,
    columns: MergedColumns,
    dimensions: int,
) -> None:
    """Write the positions range by range of nodes."""
    create_array(steps.request.file, (parts.num_nodes, dimensions), np.float32)
    shared = encoder.components == "per_component"
    scale = encoder.choice("scale")
    own = vectors.layout.num_rows if shared else parts.num_nodes
    arguments = {
        "parts": parts,
        "vectors": vectors,
        "large": column_plan(columns.large, columns.eigenvalues, nodes=own, scale=scale),
        # where components share columns, those of the rest are scaled already
        "rest": column_plan(
            columns.rest, columns.eigenvalues, nodes=own, scale="plain" if shared else scale
        ),
        "unit_rows": encoder.choice("rows") == "unit",
        "dimensions": dimensions,
        "out": steps.request.file,
    }
    chunks = range(len(parts.node_bounds) - 1)
    shards = [Shard(f"place-{chunk:05d}", {**arguments, "chunk": chunk}) for chunk in chunks]
    steps.map("positions", place_task, shards)


def column_plan(
    columns: dict[int, int], eigenvalues: Array, *, nodes: int, scale: str
) -> ColumnPlan:
    """Columns with the factors that ``Spectrum.scaled`` would give them."""
    target = tuple(columns)
    factor = np.ones(len(target))
    if scale == "sqrt_nodes":
        factor *= np.sqrt(nodes)
    elif scale == "commute":
        values = eigenvalues[list(target)]
        factor /= np.sqrt(np.where(values > 0, values, 1.0))
    return ColumnPlan(target, tuple(columns.values()), tuple(factor.tolist()))


def _describe(
    encoder: LaplacianEigenmaps,
    parts: GraphParts,
    state: IterationState,
    columns: MergedColumns,
    dimensions: int,
) -> dict[str, Any]:
    """The report of ``LaplacianEigenmaps``, from everything but the vectors."""
    spectrum = Spectrum(
        vectors=np.empty((0, dimensions), dtype=np.float32),
        eigenvalues=columns.eigenvalues,
        residuals=columns.residuals,
        solvers=tuple(sorted({"distributed", *parts.rest["solvers"]})),
        applications=state.applications + parts.rest["applications"],
        labels=np.empty(0, dtype=np.int64),
        component_values=np.empty((0, 0)) if encoder.components == "per_component" else None,
        **parts.counts,
    )
    return encoder.describe(spectrum)
