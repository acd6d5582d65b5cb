"""What a layer sees of a graph: edges, their normalisation, their lengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from peg_core.graph.graph_store import GraphStore

Positions = Sequence[npt.NDArray[np.floating[Any]]]


@dataclass(frozen=True)
class MessageGraph:
    """Rows ``start .. stop`` of A_hat with the distances of their edges.

    ``A_hat = D^-1/2 (A + I) D^-1/2`` with the degrees of the *whole* graph, also
    when only a range of rows is taken.

    Args:
        edge_index: [2, num_edges] (source, target), self-loops included; targets
            count from ``start``, sources index ``source_nodes`` or, where that is
            empty, all nodes.
        normalisation: [num_edges].
        distances: [num_edges, num_encodings].
        source_nodes: [num_sources] the distinct sources of the rows; empty where all nodes are.
    """

    edge_index: Tensor
    normalisation: Tensor
    distances: Tensor
    source_nodes: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    @classmethod
    def of_graph(cls, graph: GraphStore, positions: Positions, *, squared: bool) -> MessageGraph:
        """The whole graph."""
        degrees = 1.0 + graph.weighted_degrees
        return cls._of_rows(graph, 0, graph.num_nodes, positions, degrees, squared=squared)

    @classmethod
    def of_rows(
        cls,
        graph: GraphStore,
        start: int,
        stop: int,
        positions: Positions,
        degrees: npt.NDArray[np.floating[Any]],
        *,
        squared: bool,
    ) -> MessageGraph:
        """A range of rows; ``degrees`` are one plus the weighted degrees of all nodes."""
        rows = cls._of_rows(graph, start, stop, positions, degrees, squared=squared)
        sources, local = np.unique(rows.edge_index[0].numpy(), return_inverse=True)
        edge_index = torch.stack([torch.from_numpy(local), rows.edge_index[1]])
        return cls(edge_index, rows.normalisation, rows.distances, sources)

    @classmethod
    def _of_rows(
        cls,
        graph: GraphStore,
        start: int,
        stop: int,
        positions: Positions,
        degrees: npt.NDArray[np.floating[Any]],
        *,
        squared: bool,
    ) -> MessageGraph:
        part = graph.csr_slice(start, stop)
        nodes = np.arange(start, stop, dtype=np.int64)
        target = np.concatenate([np.repeat(nodes, np.diff(part.indptr)), nodes])
        source = np.concatenate([part.indices.astype(np.int64), nodes])
        weights = np.ones(len(part.indices)) if part.weights is None else part.weights
        weights = np.concatenate([weights, np.ones(len(nodes))])
        normalisation = weights / np.sqrt(degrees[source] * degrees[target])
        lengths = [edge_lengths(z, source, target, squared=squared) for z in positions]
        return cls(
            torch.from_numpy(np.stack([source, target - start])),
            torch.from_numpy(normalisation.astype(np.float32)),
            torch.from_numpy(np.stack(lengths, axis=1)),
        )


def edge_lengths(
    positions: npt.NDArray[np.floating[Any]],
    source: npt.NDArray[np.int64],
    target: npt.NDArray[np.int64],
    *,
    squared: bool,
    chunk: int = 262_144,
) -> npt.NDArray[np.float32]:
    """(Squared) Euclidean distances, [num_edges], in chunks so that memory stays flat."""
    lengths = np.empty(len(source), dtype=np.float32)
    for first in range(0, len(source), chunk):
        part = slice(first, first + chunk)
        difference = positions[source[part]].astype(np.float32) - positions[target[part]]
        lengths[part] = np.einsum("ij,ij->i", difference, difference)
    return lengths if squared else np.sqrt(lengths)
