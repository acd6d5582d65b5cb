"""Laplacian eigenmaps, solved component by component."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse
import scipy.sparse.linalg

from peg_core.encoding.encoder import EncoderParameters, Encoding
from peg_core.errors import GraphTooSmall
from peg_core.graph.components import connected_components
from peg_core.graph.graph_store import GraphStore
from peg_core.random_streams import random_stream

# Up to this many nodes a component is solved densely: exact, and faster than iterating.
DENSE_NODES = 512

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class LaplacianEigenmaps(EncoderParameters):
    """Place nodes by the smoothest eigenvectors of the normalised Laplacian.

    ``L = I - D^-1/2 A D^-1/2``; the null space (one vector per component) is
    known exactly and left out, so every column separates nodes *within* a
    component. Eigenvectors are defined up to a rotation of each eigenspace; PEG
    reads only distances and inner products, so that freedom does not matter.

    Args:
        dimensions: Eigenvectors kept, p in the paper.
        tolerance: Relative accuracy asked of the eigenvalue solver.
        scale: "commute" divides columns by sqrt(lambda) (commute-time distances),
            "plain" leaves unit eigenvectors.
        unit_rows: Scale every node's position to length 1.
    """

    version: ClassVar[int] = 1

    dimensions: int = 128
    tolerance: float = 1e-3
    scale: Literal["commute", "plain"] = "commute"
    unit_rows: bool = True

    def __post_init__(self) -> None:
        if self.dimensions < 1:
            raise ValueError(f"dimensions is {self.dimensions}, at least 1 is needed")
        if not 0 < self.tolerance < 1:
            raise ValueError(f"tolerance is {self.tolerance}, needed is a number between 0 and 1")
        if self.scale not in ("commute", "plain"):
            raise ValueError(f"scale is {self.scale!r}, needed is 'commute' or 'plain'")

    def solve(self, graph: GraphStore, *, seed: int) -> Encoding:
        """Positions, [num_nodes, dimensions]; missing columns are zero and said in the report."""
        if graph.num_nodes < 2:
            raise GraphTooSmall.for_encoding(needed=2, found=graph.num_nodes)
        num_components, labels = connected_components(graph)
        values, vectors = self._merge_components(graph, labels, seed=seed)
        if self.scale == "commute":
            vectors = vectors / np.sqrt(np.maximum(values, 1e-12))
        if self.unit_rows:
            length = np.linalg.norm(vectors, axis=1, keepdims=True)
            vectors = np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)
        positions = np.zeros((graph.num_nodes, self.dimensions), dtype=np.float32)
        positions[:, : vectors.shape[1]] = vectors
        report = {
            "components": num_components,
            "eigenvalues": values.tolist(),
            "padded_columns": self.dimensions - vectors.shape[1],
        }
        return Encoding(positions, report)

    def _merge_components(
        self, graph: GraphStore, labels: npt.NDArray[np.int32], *, seed: int
    ) -> tuple[Array, Array]:
        """The smallest non-zero eigenpairs over all components, ascending."""
        laplacian = normalised_laplacian(graph)
        order = np.argsort(labels, kind="stable")
        sizes = np.bincount(labels)
        pieces = []
        for component, nodes in enumerate(np.split(order, np.cumsum(sizes)[:-1])):
            if len(nodes) < 2:
                continue
            block = laplacian[nodes][:, nodes] if len(sizes) > 1 else laplacian
            values, vectors = self._solve_component(block, seed=seed, component=component)
            pieces.append((values, vectors, nodes))
        if not pieces:
            return np.zeros(0), np.zeros((graph.num_nodes, 0))
        all_values = np.concatenate([values for values, _, _ in pieces])
        owner = np.repeat(np.arange(len(pieces)), [len(values) for values, _, _ in pieces])
        column = np.concatenate([np.arange(len(values)) for values, _, _ in pieces])
        chosen = np.argsort(all_values, kind="stable")[: self.dimensions]
        merged = np.zeros((graph.num_nodes, len(chosen)))
        for place, index in enumerate(chosen):
            _, vectors, nodes = pieces[owner[index]]
            merged[nodes, place] = vectors[:, column[index]]
        return all_values[chosen], merged

    def _solve_component(
        self, laplacian: scipy.sparse.csr_array, *, seed: int, component: int
    ) -> tuple[Array, Array]:
        """Smallest non-zero eigenpairs of one connected component."""
        size = laplacian.shape[0]
        wanted = min(self.dimensions, size - 1)
        if size <= DENSE_NODES or wanted + 2 >= size // 2:
            values, vectors = np.linalg.eigh(laplacian.toarray())
            return values[1 : wanted + 1], vectors[:, 1 : wanted + 1]
        start = random_stream(seed=seed, purpose="eigenmaps start", shard=component).normal(
            size=size
        )
        shifted = scipy.sparse.eye_array(size, format="csr") - laplacian
        # tol=1e-3 of ARPACK is relative to the eigenvalue 1 at this end of the spectrum
        values, vectors = scipy.sparse.linalg.eigsh(
            shifted, k=wanted + 1, which="LA", tol=self.tolerance, v0=start
        )
        order = np.argsort(-values, kind="stable")[1:]
        return 1 - values[order], vectors[:, order]


def normalised_laplacian(graph: GraphStore) -> scipy.sparse.csr_array:
    """``I - D^-1/2 A D^-1/2`` in float64; rows of isolated nodes are those of I."""
    degrees = graph.weighted_degrees
    inverse = np.divide(1.0, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)
    scaling = scipy.sparse.dia_array((inverse[None], [0]), shape=(len(inverse), len(inverse)))
    adjacency = scaling @ graph.adjacency(np.float64) @ scaling
    return (scipy.sparse.eye_array(graph.num_nodes, format="csr") - adjacency).tocsr()
