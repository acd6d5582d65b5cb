"""What a model reads of the nodes themselves, whatever it comes from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from peg_core.atomic_file import write_json
from peg_core.errors import ArtifactMismatch
from peg_core.graph.graph_store import GraphStore
from peg_core.storage.shared_array import array_shape
from peg_core.storage.stored_path import is_there

# By the paper's letters: N, C, O, R, P, N+P.
FEATURE_KINDS = (
    "node",
    "degree",
    "one_hot",
    "random",
    "positional",
    "node+positional",
    "learned",
)
# Kinds with a part that is the same in every view of the graph.
TABLE_KINDS = ("node", "one_hot", "random", "node+positional")
POSITIONAL_KINDS = ("positional", "node+positional")
DEGREE_WIDTH = 2
# A table of which more is not zero is read as it is.
MOST_FILLED = 0.1
# Values that are looked at together for zeros.
CHUNK_VALUES = 2**24

Positions = Sequence[npt.NDArray[np.floating[Any]]]
Block = npt.NDArray[np.float32]


@dataclass(frozen=True)
class NodeFeatures:
    """A kind of features, and the part of them that no edge has a say in.

    Args:
        kind: One of :data:`FEATURE_KINDS`.
        table: [num_nodes, width], memory-mapped; None for ``degree`` and ``positional``,
            which come from the graph that carries the messages.
        learned_width: Columns of free parameters that the model holds, for ``learned``.
    """

    kind: str = "degree"
    table: Block | None = None
    learned_width: int = 0

    @cached_property
    def sparse(self) -> scipy.sparse.csr_array | None:
        """The table without its zeros, in memory; None where it has few of them, or is none."""
        if self.table is None or self.kind in POSITIONAL_KINDS:
            return None
        chunks, entries = [], 0
        rows = max(1, CHUNK_VALUES // max(1, self.table.shape[1]))
        for first in range(0, len(self.table), rows):
            chunks.append(scipy.sparse.csr_array(self.table[first : first + rows]))
            entries += chunks[-1].nnz
            if entries > MOST_FILLED * self.table.size:
                return None
        return scipy.sparse.csr_array(scipy.sparse.vstack(chunks, format="csr"))

    def width(self, positions: Positions) -> int:
        """Columns that a model reads, with the positions of any view of the graph."""
        width = DEGREE_WIDTH if self.kind == "degree" else self.learned_width
        if self.table is not None:
            width += self.table.shape[1]
        if self.kind in POSITIONAL_KINDS:
            width += sum(z.shape[1] for z in positions)
        return width

    @classmethod
    def open(cls, folder: Path) -> NodeFeatures:
        """Map the features in a folder; nothing is read until a row is asked for."""
        facts = json.loads((folder / "features.json").read_text())
        kind = facts["kind"]
        table = load_features(folder) if kind in TABLE_KINDS else None
        return cls(kind, table, facts.get("learned_width", 0))

    @staticmethod
    def save_kind(kind: str, folder: Path, *, learned_width: int = 0) -> None:
        """Write ``features.json``; ``features.npy`` stands beside it where the kind has one."""
        write_json(folder / "features.json", {"kind": kind, "learned_width": learned_width})


def table_file(folder: Path) -> Path:
    """Where the table of features is, if the kind has one."""
    return folder / "features.npy"


def transform_file(folder: Path) -> Path:
    """Where the transform that was fitted to make the table is, if there is one."""
    return folder / "transform.safetensors"


def load_features(folder: Path) -> Block | None:
    """The array ``features.npy`` of a folder, memory-mapped, or None where there is none."""
    file = table_file(folder)
    # copy-on-write: tensors share it between views and processes, none can change the file
    return np.load(file, mmap_mode="c") if file.exists() else None


def features_width(folder: Path) -> int | None:
    """Columns of the table in a folder, or None where there is none; no row is read."""
    file = table_file(folder)
    return array_shape(file)[1] if is_there(file) else None


def input_features(
    features: NodeFeatures,
    graph: GraphStore,
    positions: Positions,
    nodes: slice | npt.NDArray[np.int64] = slice(None),
) -> Block:
    """What a model reads for some nodes, [num_nodes_asked, width].

    Degrees and positions are those of ``graph``: in training the graph without the
    fold that supervises.

    Args:
        features: The kind, with its table.
        graph: The edges that carry messages.
        positions: [num_nodes, dimensions] for every encoding of that same graph.
        nodes: A range of nodes, or their indices.
    """
    blocks: list[npt.NDArray[Any]] = []
    if features.kind == "learned":
        return np.zeros((len(graph.indptr[1:][nodes]), 0), dtype=np.float32)
    if features.table is not None:
        if len(features.table) != graph.num_nodes:
            raise ArtifactMismatch.of(
                what="features and graph",
                found=f"{len(features.table):,} nodes",
                needed=f"{graph.num_nodes:,}",
            )
        blocks.append(features.table[nodes])
    if features.kind == "degree":
        degrees = graph.indptr[1:][nodes] - graph.indptr[:-1][nodes]
        blocks.append(np.stack([np.log1p(degrees), np.ones(len(degrees))], axis=1))
    if features.kind in POSITIONAL_KINDS:
        blocks += [z[nodes] for z in positions]
    if features.table is not None and len(blocks) == 1:
        return blocks[0]  # a range is not copied: the folds of a training share the one table
    return np.concatenate(blocks, axis=1).astype(np.float32)
