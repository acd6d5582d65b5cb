"""Nodes that heuristics put close to every node: where hard non-links to learn from come from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import scipy.sparse

from peg_core.graph.graph_store import GraphStore
from peg_core.graph.node_features import NodeFeatures
from peg_core.kernels.pagerank_push import RESTART, TOLERANCE, push
from peg_core.kernels.thread_spans import map_spans, row_spans
from peg_core.mapped_array import new_mapped_array
from peg_core.random_streams import random_stream

IntArray = npt.NDArray[np.integer[Any]]
Nodes = npt.NDArray[np.int32]
FloatArray = npt.NDArray[np.float32]

NO_NODE = -1
# Nodes in the pool of a node, by each heuristic.
POOL_SIZE = 100
# Features are compared with this many nodes at most, drawn once.
FEATURE_POOL = 50_000
ROWS_PER_STEP = 256


@dataclass(frozen=True)
class NegativePools:
    """For every node the strangers that are closest to it, by each heuristic.

    Made of the training graph and the features alone. Neighbours in the training graph are in no
    pool; links that are held out may be, for nothing that trains knows them.

    Args:
        pools: [num_nodes, POOL_SIZE] by each heuristic; rows end with ``NO_NODE``.
        sizes: [num_nodes] how many there are.
    """

    pools: tuple[Nodes, ...]
    sizes: tuple[IntArray, ...]

    @classmethod
    def of(
        cls, graph: GraphStore, features: NodeFeatures, *, seed: int, folder: Path | None = None
    ) -> NegativePools:
        """Pools by personalised PageRank, and by cosine of features where there are any.

        Args:
            graph: The training graph.
            features: What the model reads of nodes.
            seed: Of the nodes that features are compared with, where there are many.
            folder: Where the pools lie, 400 bytes a node and heuristic; None: in memory.
        """
        shape = (graph.num_nodes, POOL_SIZE)
        pools = [_new(folder, "pagerank", shape)]
        _fill_by_pagerank(graph, pools[0])
        if features.table is not None:
            pools.append(_new(folder, "features", shape))
            _fill_by_features(graph, features, pools[1], seed=seed)
        return cls(tuple(pools), tuple((pool >= 0).sum(axis=1) for pool in pools))

    def draw(self, number: int, nodes: IntArray, *, rng: np.random.Generator) -> IntArray:
        """A random one of the strangers of each node, ``NO_NODE`` where there are none.

        Args:
            number: Of the heuristic.
            nodes: [num_nodes_asked].
        """
        sizes = self.sizes[number][nodes]
        place = (rng.random(len(nodes)) * sizes).astype(np.int64)
        drawn: IntArray = np.asarray(self.pools[number][nodes, place], dtype=np.int64)
        return drawn

    def count_links(self, graph: GraphStore) -> int:
        """How many pairs of a node and a stranger are links of a graph."""
        links = 0
        for pool in self.pools:
            for first in range(0, len(pool), ROWS_PER_STEP):
                rows = np.asarray(pool[first : first + ROWS_PER_STEP])
                node, place = np.nonzero(rows >= 0)
                links += int(graph.contains(node + first, rows[node, place]).sum())
        return links


def _new(folder: Path | None, name: str, shape: tuple[int, int]) -> Nodes:
    if folder is None:
        return np.full(shape, NO_NODE, dtype=np.int32)
    pool: Nodes = new_mapped_array(folder / f"{name}.npy", shape, np.int32)
    pool[:] = NO_NODE
    return pool


def _fill_by_pagerank(graph: GraphStore, pool: Nodes) -> None:
    indptr, indices = np.asarray(graph.indptr), np.asarray(graph.indices)

    def fill(span: slice) -> None:
        _pagerank_pools(indptr, indices, span.start, span.stop, pool)

    map_spans(fill, row_spans(graph.num_nodes))


@numba.njit(cache=True, nogil=True)
def _pagerank_pools(
    indptr: IntArray, indices: IntArray, first: int, last: int, pool: Nodes
) -> None:
    num_nodes = len(indptr) - 1
    rank, residual = np.zeros(num_nodes), np.zeros(num_nodes)
    queue = np.empty(num_nodes, dtype=np.int64)
    reached = np.empty(num_nodes, dtype=np.int64)
    waiting = np.zeros(num_nodes, dtype=np.bool_)
    for node in range(first, last):
        count = push(
            indptr, indices, node, RESTART, TOLERANCE, rank, residual, queue, waiting, reached
        )
        found = np.sort(reached[:count])
        near = rank[found].copy()
        for other in indices[indptr[node] : indptr[node + 1]]:
            place = np.searchsorted(found, other)
            if place < count and found[place] == other:
                near[place] = 0.0
        near[np.searchsorted(found, node)] = 0.0
        order = np.argsort(-near, kind="mergesort")
        for place in range(min(count, pool.shape[1])):
            if near[order[place]] <= 0.0:
                break
            pool[node, place] = found[order[place]]
        for i in range(count):
            rank[reached[i]] = 0.0
            residual[reached[i]] = 0.0


def _fill_by_features(graph: GraphStore, features: NodeFeatures, pool: Nodes, *, seed: int) -> None:
    """The nodes of largest cosine, above 0, among all nodes or some drawn ones."""
    num_nodes = graph.num_nodes
    others = np.arange(num_nodes)
    if num_nodes > FEATURE_POOL:
        rng = random_stream(seed=seed, purpose="training feature pool")
        others = np.sort(rng.choice(num_nodes, FEATURE_POOL, replace=False))
    compared = _unit_rows(features, others)
    for first in range(0, num_nodes, ROWS_PER_STEP):
        nodes = np.arange(first, min(first + ROWS_PER_STEP, num_nodes))
        product = _unit_rows(features, nodes) @ compared.T
        alike = product.toarray() if scipy.sparse.issparse(product) else product  # [rows, others]
        for row, node in enumerate(nodes.tolist()):
            known = np.append(graph.neighbours(node), node)
            place = np.minimum(np.searchsorted(others, known), len(others) - 1)
            alike[row, place[others[place] == known]] = 0
        count = min(POOL_SIZE, len(others))
        best = np.argpartition(-alike, count - 1, axis=1)[:, :count]
        best = np.take_along_axis(best, np.argsort(-np.take_along_axis(alike, best, 1), 1), 1)
        positive = np.take_along_axis(alike, best, 1) > 0
        pool[nodes, :count] = np.where(positive, others[best], NO_NODE)


def _unit_rows(features: NodeFeatures, nodes: IntArray) -> Any:
    """Rows of length 1, without their zeros where there are many."""
    if features.sparse is not None:
        rows = features.sparse[nodes]
        lengths = np.sqrt(rows.multiply(rows).sum(axis=1))
        scale = scipy.sparse.diags_array(1 / np.maximum(np.asarray(lengths).ravel(), 1e-12))
        return scipy.sparse.csr_array(scale @ rows)
    assert features.table is not None
    dense = np.asarray(features.table[nodes], dtype=np.float32)
    return dense / np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1e-12)
