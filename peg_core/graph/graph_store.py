"""The graph as three memory-mapped arrays."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numba
import numpy as np
import numpy.typing as npt
import scipy.sparse

from peg_core.atomic_file import write_array
from peg_core.errors import ArtifactMismatch, PegError
from peg_core.graph.relations import Codes, Relations
from peg_core.kernels.directed_structure import directed_degrees
from peg_core.kernels.sorted_rows import contains, contains_bit, count_bits

IntArray = npt.NDArray[np.integer[Any]]
FloatArray = npt.NDArray[np.floating[Any]]

# Arrays of entries that not every graph has.
OPTIONAL = ("weights", "codes", "context_weights")


class CsrSlice(NamedTuple):
    """Rows ``start .. stop`` of the adjacency matrix, ``indptr`` starting at 0."""

    indptr: IntArray  # [rows + 1]
    indices: IntArray  # [entries]
    weights: FloatArray | None  # [entries]
    codes: Codes | None  # [entries]


class GraphStore:
    """An immutable undirected graph in compressed sparse rows.

    Symmetric, rows sorted, no duplicates, no self-loops. Opened by path and
    memory-mapped; a Ray task gets the path, never the object: the page cache
    shares the arrays between the processes of a machine.

    Args:
        indptr: [num_nodes + 1], int64.
        indices: [2 * num_edges], int32 while num_nodes < 2**31, else int64.
        weights: [2 * num_edges], float32, or None for an unweighted graph.
        codes: [2 * num_edges], the relations and directions of each entry, see
            :class:`Relations`; None where all edges are alike.
        relations: Kinds of node and relations; None for one undirected edge list.
        context_weights: [2 * num_edges], weights without the predicted relation, or None.
    """

    def __init__(
        self,
        indptr: IntArray,
        indices: IntArray,
        weights: FloatArray | None = None,
        codes: Codes | None = None,
        *,
        relations: Relations | None = None,
        context_weights: FloatArray | None = None,
    ) -> None:
        self.indptr = indptr
        self.indices = indices
        self.weights = weights
        self.codes = codes
        self.relations = relations
        self.context_weights = context_weights

    @property
    def num_nodes(self) -> int:
        return len(self.indptr) - 1

    @property
    def num_edges(self) -> int:
        """Undirected edges, each counted once."""
        return len(self.indices) // 2

    @property
    def degrees(self) -> IntArray:
        """Neighbours per node, [num_nodes]."""
        return np.diff(self.indptr)

    @property
    def weighted_degrees(self) -> FloatArray:
        """Sum of edge weights per node, [num_nodes], float64."""
        if self.weights is None:
            return self.degrees.astype(np.float64)
        return _row_sums(self.indptr, self.weights)

    def neighbours(self, node: int) -> IntArray:
        return self.indices[self.indptr[node] : self.indptr[node + 1]]

    def csr_slice(self, start: int, stop: int) -> CsrSlice:
        first, last = int(self.indptr[start]), int(self.indptr[stop])
        weights = None if self.weights is None else self.weights[first:last]
        codes = None if self.codes is None else self.codes[first:last]
        indptr = self.indptr[start : stop + 1] - first
        return CsrSlice(indptr, self.indices[first:last], weights, codes)

    @property
    def is_directed(self) -> bool:
        """Whether (u, v) and (v, u) are different links of the predicted relation."""
        return self.relations is not None and self.relations.target.directed

    @cached_property
    def num_linked_pairs(self) -> int:
        """Pairs with a link of the predicted relation, in one direction or in both."""
        if self.codes is None or self.relations is None:
            return self.num_edges
        return count_bits(self.codes, sum(self.relations.link_bits)) // 2

    @cached_property
    def directed_degrees(self) -> IntArray:
        """Links of the predicted relation from and to every node, [2, num_nodes]."""
        if self.relations is None or self.codes is None:
            raise PegError("directed degrees need the codes of a graph with relations")
        return directed_degrees(self.indptr, self.codes, self.relations.link_bits)

    @property
    def num_columns(self) -> int:
        """Columns of :meth:`columns`; 0 where all edges are alike."""
        return 0 if self.codes is None or self.relations is None else self.relations.num_columns

    def columns(self, entries: slice | IntArray) -> FloatArray | None:
        """Relations and directions of some entries as a gate reads them, or None."""
        if self.codes is None or self.relations is None or not self.num_columns:
            return None
        return self.relations.columns(np.asarray(self.codes[entries]))

    def balanced_ranges(self, parts: int) -> list[tuple[int, int]]:
        """Cut the nodes into at most ``parts`` ranges of about equal edge-plus-node work."""
        work = self.indptr + np.arange(self.num_nodes + 1)
        goals = np.linspace(0, work[-1], parts + 1)[1:-1]
        cuts = [0, *np.searchsorted(work, goals).tolist(), self.num_nodes]
        return [(a, b) for a, b in pairwise(cuts) if a < b]

    def edges(self) -> tuple[IntArray, IntArray]:
        """Each undirected edge once, source < target, ordered by (source, target)."""
        source = np.repeat(np.arange(self.num_nodes, dtype=self.indices.dtype), self.degrees)
        upper = source < self.indices
        return source[upper], self.indices[upper]

    def edge_weights(self) -> FloatArray | None:
        """Weights in the order of :meth:`edges`, or None."""
        if self.weights is None:
            return None
        source = np.repeat(np.arange(self.num_nodes, dtype=self.indices.dtype), self.degrees)
        return self.weights[source < self.indices]

    def contains(self, source: IntArray, target: IntArray) -> npt.NDArray[np.bool_]:
        """Which of the pairs are edges, [num_pairs]."""
        return contains(
            self.indptr,
            self.indices,
            np.asarray(source, dtype=np.int64),
            np.asarray(target, dtype=np.int64),
        )

    def contains_link(self, source: IntArray, target: IntArray) -> npt.NDArray[np.bool_]:
        """Which of the pairs are links of the predicted relation, [num_pairs].

        Where it is directed the pair (u, v) is a link from u to v.
        """
        if self.codes is None or self.relations is None:
            return self.contains(source, target)
        ends = (np.asarray(end, dtype=np.int64) for end in (source, target))
        return contains_bit(
            self.indptr, self.indices, self.codes, self.relations.link_bits[0], *ends
        )

    def filter_entries(self, keep: npt.NDArray[np.bool_]) -> GraphStore:
        """The graph of the entries where ``keep`` [2 * num_edges] is true in both directions."""
        kept_before = np.concatenate([[0], np.cumsum(keep)])
        weights = None if self.weights is None else self.weights[keep]
        codes = None if self.codes is None else self.codes[keep]
        context = None if self.context_weights is None else self.context_weights[keep]
        arrays = kept_before[self.indptr], self.indices[keep], weights, codes
        return GraphStore(*arrays, relations=self.relations, context_weights=context)

    def adjacency(self, dtype: npt.DTypeLike = np.float32) -> scipy.sparse.csr_array:
        """The adjacency matrix, [num_nodes, num_nodes]."""
        data = np.ones(len(self.indices), dtype) if self.weights is None else self.weights
        shape = (self.num_nodes, self.num_nodes)
        matrix = scipy.sparse.csr_array((data.astype(dtype), self.indices, self.indptr), shape)
        matrix.has_sorted_indices = True
        return matrix

    @classmethod
    def from_edges(
        cls,
        source: npt.ArrayLike,
        target: npt.ArrayLike,
        *,
        num_nodes: int,
        weights: npt.ArrayLike | None = None,
    ) -> GraphStore:
        """Build in memory: symmetrised, self-loops dropped, weights of duplicates summed."""
        source = np.asarray(source, dtype=np.int64)
        target = np.asarray(target, dtype=np.int64)
        _check_ends(source, target, num_nodes)
        keep = source != target
        low = np.minimum(source, target)[keep]
        high = np.maximum(source, target)[keep]
        values = np.ones(len(low)) if weights is None else np.asarray(weights, np.float64)[keep]
        upper = scipy.sparse.coo_array((values, (low, high)), shape=(num_nodes, num_nodes)).tocsr()
        full = (upper + upper.T).tocsr()
        full.sort_indices()
        return cls(
            full.indptr.astype(np.int64),
            full.indices.astype(index_dtype(num_nodes)),
            None if weights is None else full.data.astype(np.float32),
        )

    def save(self, path: Path) -> None:
        """Write the arrays into the folder ``path``."""
        write_array(path / "indptr.npy", self.indptr)
        write_array(path / "indices.npy", self.indices)
        for name in OPTIONAL:
            if getattr(self, name) is not None:
                write_array(path / f"{name}.npy", getattr(self, name))
        if self.relations is not None:
            self.relations.save(path)

    @classmethod
    def open(cls, path: Path | str) -> GraphStore:
        """Map the arrays in the folder ``path``."""
        path = Path(path) if isinstance(path, str) else path
        if not is_graph_store(path):
            raise PegError(f"{path} is not a graph store: it has no indptr.npy")
        indptr = np.load(path / "indptr.npy", mmap_mode="r")
        indices = np.load(path / "indices.npy", mmap_mode="r")
        weights, codes, context = (_load_optional(path / f"{name}.npy") for name in OPTIONAL)
        if int(indptr[-1]) != len(indices):
            raise ArtifactMismatch.of(
                what=f"indptr and indices of {path}",
                found=f"{len(indices):,} entries",
                needed=f"{int(indptr[-1]):,}",
            )
        relations = Relations.open(path)
        return cls(indptr, indices, weights, codes, relations=relations, context_weights=context)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a GraphStore is opened by path in each process, it is not pickled")


def is_graph_store(folder: Path) -> bool:
    """Whether a folder holds a graph that can be opened."""
    return (folder / "indptr.npy").exists()


def load_times(folder: Path) -> npt.NDArray[Any] | None:
    """When each entry of a graph store came, memory-mapped; None where nobody said."""
    return _load_optional(folder / "times.npy")


def _load_optional(file: Path) -> npt.NDArray[Any] | None:
    return np.load(file, mmap_mode="r") if file.exists() else None


def index_dtype(num_nodes: int) -> type[np.int32] | type[np.int64]:
    """The narrowest index type that addresses ``num_nodes`` nodes."""
    return np.int32 if num_nodes < 2**31 else np.int64


def _check_ends(source: IntArray, target: IntArray, num_nodes: int) -> None:
    for end in (source, target):
        if len(end) and (int(end.min()) < 0 or int(end.max()) >= num_nodes):
            raise PegError(
                f"node indices must lie in 0 .. {num_nodes - 1:,}, "
                f"found {int(end.min()):,} .. {int(end.max()):,}"
            )


@numba.njit(cache=True)
def _row_sums(indptr: IntArray, weights: FloatArray) -> FloatArray:
    sums = np.zeros(len(indptr) - 1, dtype=np.float64)
    for row in range(len(sums)):
        for entry in range(indptr[row], indptr[row + 1]):
            sums[row] += weights[entry]
    return sums
