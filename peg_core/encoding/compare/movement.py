"""How far nodes moved from one encoding to another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from peg_core.encoding.compare.alignment import match_positions
from peg_core.encoding.row_chunks import chunks
from peg_core.errors import ArtifactMismatch
from peg_core.graph.graph_store import FloatArray


@dataclass(frozen=True)
class Movement:
    """What differs between two encodings after the best rotation.

    Args:
        distances: Of every compared node from where it was, [num_nodes].
        relative_eta: eta over the length of the first encoding, ``||Z1||_F``.
        new_nodes: Nodes that only the second encoding has, not compared.
    """

    distances: npt.NDArray[np.float64]
    relative_eta: float
    new_nodes: int

    @property
    def eta(self) -> float:
        """``||Z1 - Z2 Q*||_F`` over the compared nodes, the PE distance."""
        return float(np.linalg.norm(self.distances))

    def moved_most(self, count: int) -> npt.NDArray[np.int64]:
        """The nodes that moved furthest, descending; equal ones by index."""
        return np.argsort(-self.distances, kind="stable")[:count]


def measure_movement(first: FloatArray, second: FloatArray) -> Movement:
    """Rotate the second encoding onto the first and measure what remains, node by node.

    Reads memory-mapped positions chunk by chunk.

    Args:
        first: [num_nodes, p].
        second: [num_nodes + new_nodes, p]; the new nodes come last.
    """
    if first.shape[1] != second.shape[1]:
        raise ArtifactMismatch(
            f"encoding A has shape {first.shape} and B has shape {second.shape}, needed are "
            "equally many columns; encode both with the same `dimensions`"
        )
    if len(first) > len(second):
        raise ArtifactMismatch(
            f"encoding A has shape {first.shape} and B has shape {second.shape}, needed is a row "
            "in B for each in A, new nodes last; exchange A and B if A is the newer one"
        )
    common = second[: len(first)]
    rotation = match_positions(first, common)
    distances = np.empty(len(first))
    squared_length = 0.0
    for rows in chunks(slice(0, len(first))):
        old = first[rows].astype(np.float64)
        distances[rows] = np.linalg.norm(old - common[rows].astype(np.float64) @ rotation, axis=1)
        squared_length += float(np.sum(old * old))
    relative = float(np.linalg.norm(distances)) / squared_length**0.5 if squared_length else 0.0
    return Movement(distances, relative, len(second) - len(first))
