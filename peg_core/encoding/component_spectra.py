"""Spectra of all components of a graph.

The Laplacian of a disconnected graph is block diagonal: its eigenvectors are those
of the components. Solving them apart is exact where one iteration over the whole
graph loses copies of the eigenvalue 0, and it is faster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from peg_core.encoding.spectral_solver import (
    SolverOptions,
    dense_eigenpairs,
    is_dense,
    solve_component,
)
from peg_core.graph.components import connected_components
from peg_core.graph.graph_store import FloatArray, GraphStore
from peg_core.random_streams import random_stream

# Floats of the dense matrices that are solved in one batch.
BATCH_FLOATS = 8_000_000

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Piece:
    """Non-trivial eigenpairs of components of equal size.

    Args:
        nodes: Nodes of each component, [components, size].
        values: [components, count].
        vectors: [components, size, count].
        residuals: [components, count].
        solver: Which solver found them.
        applications: Columns multiplied with the adjacency.
    """

    nodes: npt.NDArray[np.int64]
    values: Array
    vectors: FloatArray
    residuals: Array
    solver: str
    applications: int = 0


@dataclass(frozen=True)
class ComponentSpectra:
    """The pieces of a graph's spectrum.

    Args:
        num_components: Connected components, isolated nodes included.
        sizes: Nodes of the components with at least one edge, descending.
        labels: Component of every node, [num_nodes]; numbered by size, descending.
        pieces: Eigenpairs, largest components first.
    """

    num_components: int
    sizes: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]
    pieces: list[Piece]


def solve_spectra(
    graph: GraphStore,
    *,
    wanted: int,
    extra: int,
    options: SolverOptions,
    seed: int,
    largest_only: bool = False,
    start: FloatArray | None = None,
) -> ComponentSpectra:
    """The smallest non-zero eigenvalues of every component.

    Args:
        graph: Any graph.
        wanted: Eigenpairs per component, as far as it has them.
        extra: Further eigenpairs whose eigenvalues are of interest.
        options: How to solve.
        seed: Of the run.
        largest_only: Leave the other components out.
        start: Vectors near the wanted ones, [num_nodes, any], or None.
    """
    count, labels, sizes = _components_by_size(graph)
    order = np.argsort(labels, kind="stable").astype(np.int64)
    first = np.concatenate([[0], np.cumsum(sizes)])
    pieces: list[Piece] = []
    solvable = np.flatnonzero(sizes > 1)[: 1 if largest_only else None]
    small = [c for c in solvable if is_dense(int(sizes[c]), wanted + extra)]
    for component in solvable:
        if is_dense(int(sizes[component]), wanted + extra):
            continue
        nodes = order[first[component] : first[component + 1]]
        stream = random_stream(seed=seed, purpose="eigenmaps", shard=int(nodes[0]))
        pairs = solve_component(
            induced_component(graph, nodes),
            wanted=wanted,
            extra=extra,
            options=options,
            stream=stream,
            start=None if start is None else start[nodes],
        )
        pieces.append(
            Piece(
                nodes[None],
                pairs.values[None],
                pairs.vectors[None],
                pairs.residuals[None],
                pairs.solver,
                pairs.applications,
            )
        )
    for batch in _batches(np.array(small, dtype=np.int64), sizes):
        nodes = np.stack([order[first[c] : first[c + 1]] for c in batch])
        pieces.append(_solve_batch(graph, nodes, wanted + extra))
    return ComponentSpectra(count, sizes[sizes > 1], labels, pieces)


def _components_by_size(
    graph: GraphStore,
) -> tuple[int, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Count, labels and sizes; the largest component is number 0."""
    count, labels = connected_components(graph)
    sizes = np.bincount(labels, minlength=count)
    order = np.argsort(-sizes, kind="stable")
    rank = np.empty(count, dtype=np.int64)
    rank[order] = np.arange(count)
    return count, rank[labels], sizes[order].astype(np.int64)


def induced_component(graph: GraphStore, nodes: npt.NDArray[np.int64]) -> GraphStore:
    """The component with the given nodes (all of it, ascending) as a graph of its own."""
    if len(nodes) == graph.num_nodes:
        return graph
    number = np.zeros(graph.num_nodes, dtype=graph.indices.dtype)
    number[nodes] = np.arange(len(nodes))
    inside = np.zeros(graph.num_nodes, dtype=np.bool_)
    inside[nodes] = True
    entries = np.repeat(inside, graph.degrees)
    indptr = np.concatenate([[0], np.cumsum(graph.degrees[nodes])]).astype(np.int64)
    weights = None if graph.weights is None else graph.weights[entries]
    return GraphStore(indptr, number[graph.indices[entries]], weights)


def _batches(
    components: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]
) -> Iterator[npt.NDArray[np.int64]]:
    """Components of equal size together, as many as fit into memory."""
    for size in np.unique(sizes[components])[::-1]:
        same = components[sizes[components] == size]
        step = max(1, BATCH_FLOATS // int(size) ** 2)
        for begin in range(0, len(same), step):
            yield same[begin : begin + step]


def _solve_batch(graph: GraphStore, nodes: npt.NDArray[np.int64], count: int) -> Piece:
    """Dense solution of components of equal size; ``nodes`` is [components, size]."""
    components, size = nodes.shape
    flat = nodes.ravel()
    degrees = graph.degrees[flat]
    row = np.repeat(np.arange(len(flat)), degrees)
    entry = np.repeat(graph.indptr[flat] - np.cumsum(degrees) + degrees, degrees)
    entry = entry + np.arange(len(entry))
    number = np.zeros(graph.num_nodes, dtype=np.int64)
    number[flat] = np.tile(np.arange(size), components)
    matrix = np.zeros((components, size, size))
    values = 1.0 if graph.weights is None else graph.weights[entry]
    matrix[row // size, row % size, number[graph.indices[entry]]] = values
    root = np.sqrt(matrix.sum(axis=2))
    matrix = np.eye(size) - matrix / root[:, :, None] / root[:, None, :]
    solution = dense_eigenpairs(matrix, count=min(count, size - 1))
    return Piece(nodes, *solution, solver="dense")
