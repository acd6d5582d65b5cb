"""What can be known of a stored graph without reading its arrays."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from peg_core.graph.relations import Relations
from peg_core.storage.shared_array import array_shape


@dataclass(frozen=True)
class GraphOutline:
    """How large a stored graph is, and what its kinds are; its arrays are not read."""

    num_nodes: int
    num_edges: int
    relations: Relations | None = None

    @property
    def is_directed(self) -> bool:
        """Whether (u, v) and (v, u) are different links."""
        return self.relations is not None and self.relations.target.directed

    @classmethod
    def open(cls, folder: Path) -> GraphOutline:
        (bounds,), (entries,) = (
            array_shape(folder / f"{name}.npy") for name in ("indptr", "indices")
        )
        return cls(bounds - 1, entries // 2, Relations.open(folder))
