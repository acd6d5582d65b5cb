"""Eigenvectors of a whole graph, put together from its components."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from peg_core.encoding.spectral.component_spectra import ComponentSpectra, Piece
from peg_core.graph.graph_store import GraphStore

ComponentMode = Literal["merge", "per_component", "largest"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Spectrum:
    """Eigenvectors as columns.

    Args:
        vectors: [num_nodes, dimensions], float32; columns beyond the eigenvectors
            the graph has are zero.
        eigenvalues: Of the columns, and one more where it is known. With one set of
            eigenvectors per component, those of the largest.
        residuals: True ``||L u - lambda u||`` of the columns, [filled columns]; the
            largest over the components where they share a column.
        num_components: Connected components, isolated nodes included.
        num_isolated: Nodes without an edge.
        num_zeros: Copies of the eigenvalue 0: components with at least one edge.
        solvers: Used on the components.
        applications: Columns multiplied with the adjacency.
        labels: Component of every node, the largest is 0, [num_nodes].
        component_values: Eigenvalue of every column in every component with an edge
            where components share columns, [components, dimensions], else None.
    """

    vectors: npt.NDArray[np.float32]
    eigenvalues: Array
    residuals: Array
    num_components: int
    num_isolated: int
    num_zeros: int
    solvers: tuple[str, ...]
    applications: int
    labels: npt.NDArray[np.int64]
    component_values: Array | None = None

    @property
    def dimensions(self) -> int:
        return self.vectors.shape[1]

    @property
    def filled(self) -> int:
        """Columns that hold an eigenvector."""
        return len(self.residuals)

    def cut(self, dimensions: int) -> Spectrum:
        """The first ``dimensions`` columns; later eigenvalues stay known."""
        values = self.component_values
        return replace(
            self,
            vectors=np.ascontiguousarray(self.vectors[:, :dimensions]),
            residuals=self.residuals[:dimensions],
            component_values=None if values is None else values[:, :dimensions],
        )

    def scaled(self, scale: str) -> npt.NDArray[np.float32]:
        """A copy of the vectors with scaled columns, [num_nodes, dimensions]."""
        positions = self.vectors.copy()
        if scale == "plain":
            return positions
        if self.component_values is None:
            positions[:, : self.filled] *= self._factors(
                self.eigenvalues[: self.filled], len(positions), scale
            ).astype(np.float32)
            return positions
        sizes = np.bincount(self.labels)[: len(self.component_values)]
        factors = self._factors(self.component_values, sizes[:, None], scale).astype(np.float32)
        inside = self.labels < len(factors)
        positions[inside] *= factors[self.labels[inside]]
        return positions

    def _factors(self, values: Array, nodes: int | npt.NDArray[np.int64], scale: str) -> Array:
        if scale == "sqrt_nodes":
            return np.sqrt(nodes) * np.ones_like(values)
        # columns without an eigenvalue are zero anyway
        return 1 / np.sqrt(np.where(values > 0, values, 1.0))


def assemble_spectrum(
    graph: GraphStore,
    spectra: ComponentSpectra,
    *,
    dimensions: int,
    mode: ComponentMode,
    keep_null_vectors: bool,
) -> Spectrum:
    """Columns of a whole graph.

    Args:
        graph: The graph.
        spectra: Eigenpairs of its components.
        dimensions: Columns, p.
        mode: Whether components compete for columns ("merge") or share them.
        keep_null_vectors: Put the eigenvectors of eigenvalue 0 first.
    """
    zeros = len(spectra.sizes) if mode != "largest" else min(1, len(spectra.sizes))
    build = _share_columns if mode == "per_component" else _merge_columns
    vectors, values, residuals, own = build(graph, spectra, dimensions, zeros * keep_null_vectors)
    return Spectrum(
        vectors=vectors,
        eigenvalues=values,
        residuals=residuals,
        num_components=spectra.num_components,
        num_isolated=spectra.num_components - len(spectra.sizes),
        num_zeros=len(spectra.sizes),
        solvers=tuple(sorted({piece.solver for piece in spectra.pieces})),
        applications=sum(piece.applications for piece in spectra.pieces),
        labels=spectra.labels,
        component_values=own,
    )


def _merge_columns(
    graph: GraphStore, spectra: ComponentSpectra, dimensions: int, null_vectors: int
) -> tuple[npt.NDArray[np.float32], Array, Array, Array | None]:
    """The smallest eigenvalues over all components, ascending."""
    vectors = np.zeros((graph.num_nodes, dimensions), dtype=np.float32)
    nulls = min(null_vectors, dimensions)
    root = np.sqrt(graph.weighted_degrees)
    for component in range(nulls):
        nodes = np.flatnonzero(spectra.labels == component)
        vectors[nodes, component] = root[nodes] / np.linalg.norm(root[nodes])
    pieces = spectra.pieces
    values = np.concatenate([np.zeros(null_vectors), *(piece.values.ravel() for piece in pieces)])
    chosen = np.argsort(values, kind="stable")[: dimensions + 1]
    residuals = np.zeros(min(len(chosen), dimensions))
    firsts = null_vectors + np.cumsum([0, *(piece.values.size for piece in pieces)])
    for column, index in enumerate(chosen[:dimensions]):
        if index < null_vectors:
            continue
        number = int(np.searchsorted(firsts, index, side="right")) - 1
        piece = pieces[number]
        component, own = divmod(int(index - firsts[number]), piece.values.shape[1])
        vectors[piece.nodes[component], column] = piece.vectors[component, :, own]
        residuals[column] = piece.residuals[component, own]
    return vectors, values[chosen], residuals, None


def _share_columns(
    graph: GraphStore, spectra: ComponentSpectra, dimensions: int, null_vectors: int
) -> tuple[npt.NDArray[np.float32], Array, Array, Array | None]:
    """Column k holds the k-th eigenvector of every component."""
    vectors = np.zeros((graph.num_nodes, dimensions), dtype=np.float32)
    own_values = np.zeros((len(spectra.sizes), dimensions))
    residuals = np.zeros(dimensions)
    shift = 1 if null_vectors else 0
    if shift:
        inside = spectra.labels < len(spectra.sizes)
        degrees = graph.weighted_degrees * inside
        total = np.bincount(spectra.labels, weights=degrees)[spectra.labels]
        share = np.divide(degrees, total, out=np.zeros_like(degrees), where=total > 0)
        vectors[:, 0] = np.sqrt(share)
    filled = shift
    for piece in spectra.pieces:
        count = min(piece.values.shape[1], dimensions - shift)
        columns = slice(shift, shift + count)
        vectors[piece.nodes, columns] = piece.vectors[:, :, :count]
        own_values[spectra.labels[piece.nodes[:, 0]], columns] = piece.values[:, :count]
        worst = piece.residuals[:, :count].max(axis=0)
        residuals[columns] = np.maximum(residuals[columns], worst)
        filled = max(filled, shift + count)
    values = _values_of_largest(spectra.pieces, shift, dimensions)
    return vectors, values, residuals[:filled], own_values


def _values_of_largest(pieces: list[Piece], shift: int, dimensions: int) -> Array:
    if not pieces:
        return np.zeros(shift)
    largest = max(pieces, key=lambda piece: piece.nodes.shape[1])
    return np.concatenate([np.zeros(shift), largest.values[0]])[: dimensions + 1]
