"""NetSMF as tasks: samples by ranges of edges, sums by ranges of rows, products on tiles.

No task depends on the number of workers, and each can be run twice. A range of rows is
sampled by one task; what its walks saw belongs to all rows, so samples are also written
turned, sorted by the other end, and each range of rows takes its slices from all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import scipy.sparse

from peg_core.atomic_file import write_array
from peg_core.encoding.deepwalk import MATRIX_NEGATIVES, DeepWalk
from peg_core.encoding.row_length import unit_rows
from peg_core.encoding.walks.netsmf import log_entries, row_factors, sample_rows
from peg_core.encoding.walks.randomised_svd import SparseMatrix
from peg_core.encoding.walks.spectral_propagation import propagate_block
from peg_core.graph.graph_store import GraphStore
from peg_core.kernels.thread_spans import one_blas_thread
from peg_core.storage.shared_array import read_rows, write_rows
from workers.artifact_ref import ArtifactRef
from workers.distributed_encoding.encoded_graph import EncodedGraph
from workers.distributed_encoding.tiled_matrix import TiledMatrix, join_rows


class EntriesResult(TypedDict):
    """How many entries were written."""

    entries: int


def range_folder(folder: Path, number: int) -> Path:
    return folder / f"range-{number:05d}"


def sample_task(
    kept: EncodedGraph, encoder: DeepWalk, seed: int, number: int, folder: Path
) -> EntriesResult:
    """Sample the rows of a range; write what was seen by row, and again by what was seen."""
    graph = kept.graph.open()
    rows = kept.rows(number)
    window, samples = encoder.window, encoder.samples
    found = sample_rows(graph, rows, window=window, samples=samples, seed=seed)
    own = GraphStore(*graph.csr_slice(rows.start, rows.stop))
    factors = row_factors(own, window=window, samples=samples) / 2
    lengths = np.diff(found.indptr)
    values = (found.counts * np.repeat(factors, lengths)).astype(np.float32)
    home = range_folder(folder, number)
    write_array(home / "indptr.npy", found.indptr)
    write_array(home / "indices.npy", found.indices)
    write_array(home / "values.npy", values)
    order = np.argsort(found.indices, kind="stable")
    turned = found.indices[order]
    sources = np.repeat(np.arange(rows.start, rows.stop, dtype=turned.dtype), lengths)
    write_array(home / "turned-rows.npy", turned)
    write_array(home / "turned-columns.npy", sources[order])
    write_array(home / "turned-values.npy", values[order])
    write_array(home / "turned-bounds.npy", np.searchsorted(turned, kept.bounds))
    return {"entries": len(values)}


def merge_task(kept: EncodedGraph, number: int, samples: Path, folder: Path) -> EntriesResult:
    """Sum both directions of a range of rows, and take the logarithm."""
    rows = kept.rows(number)
    home = range_folder(samples, number)
    indptr = np.load(home / "indptr.npy")
    own = [
        (
            np.repeat(np.arange(rows.stop - rows.start), np.diff(indptr)),
            np.load(home / "indices.npy"),
            np.load(home / "values.npy"),
        )
    ]
    for other in kept.ranges:
        others = range_folder(samples, other)
        bounds = np.load(others / "turned-bounds.npy")
        span = slice(bounds[number], bounds[number + 1])
        if span.start < span.stop:
            names = ("turned-rows", "turned-columns", "turned-values")
            pieces = [read_rows(others / f"{name}.npy", span.start, span.stop) for name in names]
            own.append((pieces[0] - rows.start, pieces[1], pieces[2]))
    row, column, value = (np.concatenate(pieces) for pieces in zip(*own, strict=True))
    shape = (rows.stop - rows.start, kept.num_nodes)
    matrix = scipy.sparse.coo_array((value, (row, column)), shape=shape).tocsr()
    matrix.sort_indices()
    degrees = np.load(kept.degrees, mmap_mode="r")
    matrix.data = log_entries(
        matrix.data,
        np.repeat(degrees[rows], np.diff(matrix.indptr)),
        degrees[matrix.indices],
        kept.volume / MATRIX_NEGATIVES,
    )
    matrix.eliminate_zeros()
    out = range_folder(folder, number)
    write_array(out / "indptr.npy", matrix.indptr.astype(np.int64))
    write_array(out / "indices.npy", matrix.indices)
    write_array(out / "values.npy", matrix.data)
    return {"entries": len(matrix.data)}


def join_task(
    kept: EncodedGraph, number: int, first: int, parts: Path, matrix: Path
) -> dict[str, Any]:
    """Copy the rows of a range into the whole matrix, from entry ``first`` on."""
    home = range_folder(parts, number)
    indptr = np.load(home / "indptr.npy")
    write_rows(matrix / "indptr.npy", kept.rows(number).start + 1, first + indptr[1:])
    write_rows(matrix / "indices.npy", first, np.load(home / "indices.npy"))
    write_rows(matrix / "weights.npy", first, np.load(home / "values.npy"))
    return {}


def multiply_task(
    matrix: Path, before: TiledMatrix, product: TiledMatrix, image: TiledMatrix, block: int
) -> dict[str, Any]:
    """Multiply a column block with the matrix once, and once more."""
    stored = GraphStore.open(matrix)
    values = stored.weights if stored.weights is not None else np.zeros(0, np.float32)
    symmetric = SparseMatrix(stored.indptr, stored.indices, values)
    columns = before.read_block(block, np.float32)
    result = np.zeros_like(columns)
    symmetric.multiply_block(columns, result)
    product.write_block(block, result)
    symmetric.multiply_block(result, columns)
    image.write_block(block, columns)
    return {}


def propagate_task(
    graph: ArtifactRef[GraphStore], before: TiledMatrix, after: TiledMatrix, block: int
) -> dict[str, Any]:
    """Smooth a column block along the graph."""
    columns = before.read_block(block, np.float32)
    with one_blas_thread():
        after.write_block(block, propagate_block(graph.open(), columns))
    return {}


def place_task(
    kept: EncodedGraph,
    table: TiledMatrix,
    chunk: int,
    columns: tuple[int, ...],
    factors: tuple[float, ...],
    rows: str,
    dimensions: int,
    out: Path,
) -> dict[str, Any]:
    """Write the positions of a range of nodes into the file of all positions.

    Args:
        kept: The graph.
        table: Vectors, by chunks that are the graph's ranges.
        chunk: Number of the range.
        columns, factors: Columns of the table that are used, and what they are multiplied with.
        rows: "unit" or "plain".
        dimensions: Of the positions.
        out: An ``.npy`` file of zeros, [num_nodes, dimensions], float32.
    """
    own = kept.rows(chunk)
    tiles = table.open_chunk(chunk, table.layout.blocks)
    block = join_rows(tiles, slice(None), np.float32)[:, list(columns)]
    block *= np.array(factors, dtype=np.float32)
    block *= np.load(kept.degrees, mmap_mode="r")[own, None] > 0
    padded = np.zeros((len(block), dimensions), dtype=np.float32)
    padded[:, : len(columns)] = unit_rows(block) if rows == "unit" else block
    write_rows(out, own.start, padded)
    return {}
