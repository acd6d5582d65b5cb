"""Laplacian eigenmaps of one large component as tasks on tiles.

Column tasks hold a few columns of all nodes and multiply them with the graph; row
tasks hold all columns of a few nodes and sum or apply small matrices. None depends
on the number of workers, and each can be run twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from peg_core.atomic_file import write_array
from peg_core.encoding.row_chunks import gram, rotate, scale_rows, subtract_projection
from peg_core.encoding.spectral.chebyshev_filter import ChebyshevFilter
from peg_core.encoding.spectral.normalised_operator import NormalisedOperator, rayleigh_quotients
from peg_core.graph.graph_store import FloatArray, GraphStore
from peg_core.kernels.thread_spans import one_blas_thread
from peg_core.random_streams import random_stream
from peg_core.storage.shared_array import read_rows, write_rows
from workers.artifact_ref import ArtifactRef
from workers.distributed_encoding.graph_parts import GraphParts
from workers.distributed_encoding.tiled_matrix import TiledMatrix, join_rows

PURPOSE = "eigenmaps in tiles"


class FilterResult(TypedDict):
    """Columns multiplied with the adjacency."""

    applications: int


class MeasureResult(TypedDict):
    """Eigenvalues of L and true residuals, and columns multiplied with the adjacency."""

    values: list[float]
    residuals: list[float]
    applications: int


@dataclass(frozen=True)
class ColumnPlan:
    """Which columns of a part become which columns of the positions.

    Args:
        target: Columns of the positions, [any].
        source: Columns of the part; -1 is the null vector, [any].
        factor: What they are multiplied with, [any].
    """

    target: tuple[int, ...] = ()
    source: tuple[int, ...] = ()
    factor: tuple[float, ...] = ()


def draw_task(matrix: TiledMatrix, chunk: int, seed: int) -> dict[str, Any]:
    """Random rows to start from; they depend on (seed, chunk) alone."""
    rows = matrix.layout.rows(chunk)
    stream = random_stream(seed=seed, purpose=PURPOSE, shard=chunk)
    shape = (rows.stop - rows.start, matrix.layout.num_columns)
    values = stream.standard_normal(shape, dtype=np.float32)
    matrix.write_chunk(chunk, matrix.layout.blocks, values)
    return {}


def filter_task(
    component: ArtifactRef[GraphStore],
    chebyshev: ChebyshevFilter,
    before: TiledMatrix,
    filtered: TiledMatrix,
    image: TiledMatrix,
    block: int,
    kind: str,
) -> FilterResult:
    """Filter a column block, and multiply the result with N once more.

    Args:
        component: The component.
        chebyshev: The filter.
        before: The columns to filter.
        filtered, image: Where the filtered columns and their products with N go.
        block: Number of the column block.
        kind: "float32" or "float64".
    """
    with one_blas_thread():
        operator = NormalisedOperator(component.open(), kind)
        columns = before.read_block(block, kind)
        workspace = np.empty_like(columns)
        result = chebyshev.apply(operator, columns, workspace)
        other = workspace if result is columns else columns
        null = operator.null_vector()
        subtract_projection(null, gram(null, result), result)
        filtered.write_block(block, result)
        scale_rows(result, operator.inverse_root_degrees, result)
        operator.step(result, other, alpha=1.0, beta=0.0, gamma=0.0)
        scale_rows(other, operator.root_degrees, other)
        image.write_block(block, other)
    return {"applications": operator.applications}


def gram_task(
    columns: TiledMatrix, image: TiledMatrix, chunk: int, first: int, out: Path
) -> dict[str, Any]:
    """A chunk's share of ``Y^T Y_active`` and ``Y^T N Y_active``, [2, columns, active].

    Args:
        columns: Y: locked columns, then filtered ones.
        image: N Y_active.
        chunk: Number of the chunk of rows.
        first: The first active column block.
        out: The ``.npy`` file to write.
    """
    layout = columns.layout
    active = layout.blocks[first:]
    skipped = layout.columns(first).start
    tiles, images = columns.open_chunk(chunk, layout.blocks), image.open_chunk(chunk, active)
    total = np.zeros((2, layout.num_columns, layout.num_columns - skipped))
    with one_blas_thread():
        for rows in layout.strips(chunk):
            left = join_rows(tiles, rows, np.float64)
            total[0] += gram(left, left[:, skipped:])
            total[1] += gram(left, join_rows(images, rows, np.float64))
    write_array(out, total)
    return {}


def rotate_task(
    columns: TiledMatrix, rotated: TiledMatrix, rotation: Path, chunk: int, first: int, kind: str
) -> dict[str, Any]:
    """Turn a chunk of filtered columns into Ritz vectors.

    Args:
        columns: Y: locked columns, then filtered ones.
        rotated: Where the Ritz vectors go.
        rotation: File with R, [columns, active].
        chunk: Number of the chunk of rows.
        first: The first active column block.
        kind: "float32" or "float64".
    """
    layout = columns.layout
    tiles = columns.open_chunk(chunk, layout.blocks)
    factor = np.load(rotation)
    own = layout.rows(chunk)
    out = np.empty((own.stop - own.start, factor.shape[1]), dtype=kind)
    with one_blas_thread():
        for rows in layout.strips(chunk):
            # in float64: the columns are nearly dependent before they are rotated
            rotate(join_rows(tiles, rows, np.float64), factor, out[rows])
    rotated.write_chunk(chunk, layout.blocks[first:], out)
    return {}


def measure_task(
    component: ArtifactRef[GraphStore], vectors: TiledMatrix, block: int, count: int, kind: str
) -> MeasureResult:
    """Eigenvalues of L and true residuals of the first ``count`` columns of a block."""
    with one_blas_thread():
        operator = NormalisedOperator(component.open(), kind)
        columns = vectors.read_block(block, kind)[:, :count]
        values, residuals = rayleigh_quotients(operator, columns)
    return {
        "values": values.tolist(),
        "residuals": residuals.tolist(),
        "applications": operator.applications,
    }


def place_task(
    parts: GraphParts,
    vectors: TiledMatrix,
    chunk: int,
    large: ColumnPlan,
    rest: ColumnPlan,
    unit_rows: bool,
    dimensions: int,
    out: Path,
) -> dict[str, Any]:
    """Write the positions of a range of nodes into the file of all positions.

    Args:
        parts: The parts of the graph.
        vectors: Eigenvectors of the largest component.
        chunk: Number of the range of nodes.
        large, rest: Which columns of the two parts are used.
        unit_rows: Scale every position to length 1.
        dimensions: Of the positions.
        out: An ``.npy`` file of zeros, [num_nodes, dimensions], float32.
    """
    start, stop = parts.node_bounds[chunk : chunk + 2]
    block = np.zeros((stop - start, dimensions), dtype=np.float32)
    if large.target:
        nodes = _nodes(parts.folder / "large-nodes.npy", parts.large_bounds, chunk) - start
        block[np.ix_(nodes, np.array(large.target))] = _large_columns(parts, vectors, chunk, large)
    if rest.target:
        nodes = _nodes(parts.folder / "rest-nodes.npy", parts.rest_bounds, chunk) - start
        rows = slice(*parts.rest_bounds[chunk : chunk + 2])
        smaller = read_rows(parts.folder / "rest-vectors.npy", rows.start, rows.stop)
        values = smaller[:, list(rest.source)] * np.array(rest.factor, dtype=np.float32)
        # both parts may fill a column, each at its own nodes
        block[np.ix_(nodes, np.array(rest.target))] = values
    if unit_rows:
        length = np.linalg.norm(block, axis=1, keepdims=True)
        np.divide(block, length, out=block, where=length > 0)
    write_rows(out, start, block)
    return {}


def _nodes(file: Path, bounds: tuple[int, ...], chunk: int) -> npt.NDArray[np.int64]:
    rows = slice(*bounds[chunk : chunk + 2])
    if rows.start == rows.stop:
        return np.zeros(0, dtype=np.int64)
    nodes: npt.NDArray[np.int64] = np.load(file, mmap_mode="r")[rows]
    return nodes


def _large_columns(
    parts: GraphParts, vectors: TiledMatrix, chunk: int, plan: ColumnPlan
) -> FloatArray:
    """Columns of the largest component, scaled, [rows of the chunk, columns of the plan]."""
    rows = vectors.layout.rows(chunk)
    count = max(plan.source) + 1
    blocks = [b for b in vectors.layout.blocks if vectors.layout.columns(b).start < count]
    out = np.empty((rows.stop - rows.start, len(plan.source)), dtype=np.float32)
    values = join_rows(vectors.open_chunk(chunk, blocks), slice(None), np.float32)
    for number, source in enumerate(plan.source):
        if source >= 0:
            out[:, number] = values[:, source]
            continue
        piece = parts.component.open().csr_slice(rows.start, rows.stop)
        out[:, number] = np.sqrt(GraphStore(*piece).weighted_degrees / parts.volume)
    out *= np.array(plan.factor, dtype=np.float32)
    return out
