"""What is done to the rows of a table before they are positions."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
import numpy.typing as npt

from peg_core.encoding.row_chunks import chunks
from peg_core.errors import PegError
from peg_core.graph.graph_store import FloatArray, GraphStore

Rows = Literal["unit", "plain"]


def place_rows(
    table: FloatArray, graph: GraphStore, *, dimensions: int, rows: str
) -> npt.NDArray[np.float32]:
    """Positions from a table.

    Args:
        table: [num_nodes, any].
        graph: Its isolated nodes are placed at the origin.
        dimensions: Columns of the positions; missing ones are 0.
        rows: "unit" scales every row to length 1, "plain" does not.

    Returns:
        [num_nodes, dimensions], finite.
    """
    width = min(dimensions, table.shape[1])
    positions = np.zeros((graph.num_nodes, dimensions), dtype=np.float32)
    degrees = graph.degrees
    for span in chunks(slice(0, graph.num_nodes)):
        block = table[span, :width] * (degrees[span, None] > 0)
        if not np.isfinite(block).all():
            raise PositionsNotFinite.found()
        positions[span, :width] = unit_rows(block) if rows == "unit" else block
    return positions


def unit_rows(block: FloatArray) -> FloatArray:
    """Rows of length 1; rows of length 0 stay."""
    length = np.linalg.norm(block, axis=1, keepdims=True)
    return np.divide(block, length, out=np.zeros_like(block), where=length > 0)


class PositionsNotFinite(PegError):
    """A training that left all bounds."""

    @classmethod
    def found(cls) -> Self:
        return cls(
            "positions became infinite or undefined, needed are finite ones; "
            "lower `learning_rate`, or check the edge weights"
        )
