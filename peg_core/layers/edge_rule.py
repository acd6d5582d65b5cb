"""How a layer weighs its edges before the gate, and what the gate measures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numba
import numpy as np
import numpy.typing as npt

Measure = Literal["distance", "squared", "inner"]
Normalisation = Literal["symmetric", "mean", "neighbours"]
MEASURES: tuple[str, ...] = get_args(Measure)

FloatArray = npt.NDArray[np.floating[Any]]
IntArray = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True)
class EdgeRule:
    """What a model asks of every edge.

    Args:
        measure: Of the two positions: their distance, its square, or their inner product.
            All are the same for rotated or reflected positions.
        normalisation: "symmetric": the entries of ``D^-1/2 (A + I) D^-1/2``, self-loops
            included; "mean": ``D^-1 A``, without self-loops; "neighbours": ``D^-1/2 A D^-1/2``,
            without them.
    """

    measure: Measure = "distance"
    normalisation: Normalisation = "symmetric"

    def edge_weights(
        self, weights: FloatArray | None, target_degrees: FloatArray, source_degrees: FloatArray
    ) -> npt.NDArray[np.float32]:
        """Weights of edges from the weighted degrees of their ends in the whole graph.

        Args:
            weights: [num_edges], or None for 1.
            target_degrees: [num_edges].
            source_degrees: [num_edges].
        """
        value = 1.0 if weights is None else weights
        if self.normalisation == "mean":
            return np.asarray(value / target_degrees, dtype=np.float32)
        if self.normalisation == "neighbours":
            return np.asarray(value / np.sqrt(target_degrees * source_degrees), dtype=np.float32)
        product = (1.0 + target_degrees) * (1.0 + source_degrees)
        return np.asarray(value / np.sqrt(product), dtype=np.float32)

    def loop_weights(self, degrees: FloatArray) -> npt.NDArray[np.float32]:
        """Weights of the self-loops of nodes with these weighted degrees."""
        if self.normalisation != "symmetric":
            return np.zeros(len(degrees), dtype=np.float32)
        return (1 / (1.0 + degrees)).astype(np.float32)

    def edge_measures(
        self, positions: FloatArray, source: IntArray, target: IntArray
    ) -> npt.NDArray[np.float32]:
        """What the gate reads of each edge, [num_edges]; nothing is gathered."""
        if self.measure == "inner":
            return _inner(positions, source, target)
        squared = _squared_distances(positions, source, target)
        return squared if self.measure == "squared" else np.sqrt(squared)

    def loop_measures(self, positions: FloatArray) -> npt.NDArray[np.float32]:
        """What the gate reads of self-loops, [num_nodes]."""
        if self.measure == "inner":
            return np.einsum("ij,ij->i", positions, positions).astype(np.float32)
        return np.zeros(len(positions), dtype=np.float32)


@numba.njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _squared_distances(positions: FloatArray, source: IntArray, target: IntArray) -> FloatArray:
    out = np.empty(len(source), dtype=np.float32)
    for edge in range(len(source)):
        first, second = positions[source[edge]], positions[target[edge]]
        total = np.float32(0)
        for column in range(positions.shape[1]):
            difference = np.float32(first[column]) - np.float32(second[column])
            total += difference * difference
        out[edge] = total
    return out


@numba.njit(cache=True, nogil=True, fastmath={"contract", "reassoc"})
def _inner(positions: FloatArray, source: IntArray, target: IntArray) -> FloatArray:
    out = np.empty(len(source), dtype=np.float32)
    for edge in range(len(source)):
        first, second = positions[source[edge]], positions[target[edge]]
        total = np.float32(0)
        for column in range(positions.shape[1]):
            total += np.float32(first[column]) * np.float32(second[column])
        out[edge] = total
    return out
