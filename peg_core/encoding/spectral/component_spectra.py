"""Spectra of all components of a graph.

The Laplacian of a disconnected graph is block diagonal: its eigenvectors are those
of the components. Solving them apart is exact where one iteration over the whole
graph loses copies of the eigenvalue 0, and it is faster.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from peg_core.encoding.spectral.eigenpairs import Eigenpairs
from peg_core.encoding.spectral.solver import (
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

NullColumns = Literal["none", "one", "all"]

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

    @classmethod
    def of_component(cls, nodes: npt.NDArray[np.int64], pairs: Eigenpairs) -> Piece:
        """A piece of one component."""
        return cls(
            nodes[None],
            pairs.values[None],
            pairs.vectors[None],
            pairs.residuals[None],
            pairs.solver,
            pairs.applications,
        )


@dataclass(frozen=True)
class ComponentSpectra:
    """The pieces of a graph's spectrum.

    Args:
        num_components: Connected components, isolated nodes included.
        sizes: Nodes of the components with at least one edge, descending; the
            eigenvalue 0 has one copy for each.
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
    dimensions: int,
    null_columns: NullColumns,
    options: SolverOptions,
    seed: int,
    largest_only: bool = False,
    start: FloatArray | None = None,
) -> ComponentSpectra:
    """The smallest non-zero eigenvalues of every component.

    Args:
        graph: Any graph.
        dimensions: Columns of the encoding, p; one more eigenvalue is computed.
        null_columns: Columns that null vectors will take: "none", "one", or "all".
        options: How to solve.
        seed: Of the run.
        largest_only: Leave the other components out.
        start: Vectors near the wanted ones, [num_nodes, any], or None.
    """
    count, labels, sizes = _components_by_size(graph)
    connected = sizes[sizes > 1]
    solved = connected[:1] if largest_only else connected
    taken = {"none": 0, "one": 1, "all": len(solved)}[null_columns]
    spectra = ComponentSpectra(count, connected, labels, [])
    if taken > dimensions:  # null vectors fill all columns, and the next eigenvalue is 0 too
        return spectra
    wanted, extra = (dimensions - taken, 1) if taken < dimensions else (1, 0)
    order = np.argsort(labels, kind="stable").astype(np.int64)
    parts = np.split(order, np.cumsum(sizes))[: len(solved)]
    large = [nodes for nodes in parts if not is_dense(len(nodes), wanted + extra)]
    for nodes in large:
        pairs = solve_component(
            induced_component(graph, nodes),
            wanted=wanted,
            extra=extra,
            options=options,
            stream=random_stream(seed=seed, purpose="eigenmaps", shard=int(nodes[0])),
            start=None if start is None else start[nodes],
        )
        spectra.pieces.append(Piece.of_component(nodes, pairs))
    for batch in _batches(parts[len(large) :]):
        spectra.pieces.append(_solve_batch(graph, batch, wanted + extra))
    return spectra


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


def _batches(components: list[npt.NDArray[np.int64]]) -> Iterator[npt.NDArray[np.int64]]:
    """Nodes of components of equal size together, as many as fit into memory.

    Args:
        components: Nodes of each component, largest first.
    """
    for size, same in itertools.groupby(components, key=len):
        step = max(1, BATCH_FLOATS // size**2)
        nodes = np.stack(list(same))
        for begin in range(0, len(nodes), step):
            yield nodes[begin : begin + step]


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
