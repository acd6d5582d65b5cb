"""A graph in a few numbers, read chunk by chunk from its memory map."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.errors import ArtifactMismatch, PegError
from peg_core.graph.components import connected_components
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.graph_ids import GraphIds
from peg_core.graph.node_features import load_features

CHUNK_NODES = 1 << 20
MAX_BINS = 16
TOP_HUBS = 10
TOP_COMPONENTS = 5

Array = npt.NDArray[np.int64]


@dataclass(frozen=True)
class DegreeBin:
    """How many nodes have ``low .. high`` neighbours, both included."""

    low: int
    high: int
    nodes: int


@dataclass(frozen=True)
class Hub:
    """A node with many neighbours.

    Args:
        id: What the user calls it; None where the store holds no ids.
        index: Its row in the store.
        degree: Its neighbours.
    """

    id: Any
    index: int
    degree: int


@dataclass(frozen=True)
class GraphSummary:
    """What a graph looks like.

    Args:
        nodes: Number of nodes.
        edges: Undirected edges, each counted once.
        weighted: Whether edges carry weights.
        density: Edges over pairs of nodes.
        mean_degree, median_degree, max_degree: Of neighbours, not of weights.
        degree_distribution: Bins that grow by a constant factor; the first holds degree 0.
        isolated_nodes: Nodes without a neighbour.
        components: Connected components, isolated nodes among them.
        largest_components: Nodes of the largest ones, descending.
        hubs: Nodes with the most neighbours, descending; equal ones by index.
        feature_width: Numbers per node, or None.
        disk_bytes: All files of the store.
        mapped_bytes: Address space of the graph's arrays; pages are loaded when they are read.
    """

    nodes: int
    edges: int
    weighted: bool
    density: float
    mean_degree: float
    median_degree: float
    max_degree: int
    degree_distribution: list[DegreeBin]
    isolated_nodes: int
    components: int
    largest_components: list[int]
    hubs: list[Hub]
    feature_width: int | None
    disk_bytes: int
    mapped_bytes: int


@dataclass(frozen=True)
class DegreeTable:
    """How often each degree occurs; E edges allow at most 2 sqrt(E) + 1 different ones."""

    degrees: Array  # [distinct], ascending
    nodes: Array  # [distinct]

    def nodes_with(self, low: int, high: int) -> int:
        """Nodes with ``low .. high`` neighbours."""
        return int(self.nodes[(low <= self.degrees) & (self.degrees <= high)].sum())

    def median(self) -> float:
        if not len(self.degrees):
            return 0.0
        last = np.cumsum(self.nodes)  # one past the rank of the last node of each degree
        middle = [(last[-1] - 1) // 2, last[-1] // 2]
        return float(self.degrees[np.searchsorted(last, middle, side="right")].mean())


def summarise_graph(folder: Path) -> GraphSummary:
    """Summarise the graph store in ``folder``."""
    try:
        graph, features = GraphStore.open(folder), load_features(folder)
    except (OSError, ValueError) as error:
        raise PegError(
            f"the graph store {folder} cannot be read ({error}); all of its .npy files are "
            "needed: write it again with `peg run CONFIG --force ingest`"
        ) from error
    nodes, edges = graph.num_nodes, graph.num_edges
    table, top = _scan_degrees(graph)
    components, largest = _component_sizes(graph)
    arrays = [graph.indptr, graph.indices, *([] if graph.weights is None else [graph.weights])]
    return GraphSummary(
        nodes=nodes,
        edges=edges,
        weighted=graph.weights is not None,
        density=2 * edges / (nodes * (nodes - 1)) if nodes > 1 else 0.0,
        mean_degree=2 * edges / nodes if nodes else 0.0,
        median_degree=table.median(),
        max_degree=int(table.degrees.max(initial=0)),
        degree_distribution=bin_degrees(table),
        isolated_nodes=table.nodes_with(0, 0),
        components=components,
        largest_components=largest,
        hubs=_name_hubs(folder, graph, top),
        feature_width=None if features is None else features.shape[1],
        disk_bytes=sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()),
        mapped_bytes=sum(array.nbytes for array in arrays),
    )


def bin_degrees(table: DegreeTable) -> list[DegreeBin]:
    """Degree 0, then ``b^k .. b^(k+1) - 1``, b the least power of 2 that keeps the bins few."""
    bits = int(table.degrees.max(initial=0)).bit_length()
    step = max(1, math.ceil(bits / (MAX_BINS - 1)))
    ranges = [(0, 0), *((1 << k, (1 << (k + step)) - 1) for k in range(0, bits, step))]
    return [DegreeBin(low, high, table.nodes_with(low, high)) for low, high in ranges]


def _degree_chunks(graph: GraphStore) -> Iterator[tuple[int, Array]]:
    """The first node and the degrees of consecutive ranges of nodes."""
    for start in range(0, graph.num_nodes, CHUNK_NODES):
        stop = min(start + CHUNK_NODES, graph.num_nodes)
        yield start, np.diff(graph.indptr[start : stop + 1])


def _scan_degrees(graph: GraphStore) -> tuple[DegreeTable, Array]:
    """How often each degree occurs, and the nodes with the most neighbours, [TOP_HUBS]."""
    table = DegreeTable(np.zeros(0, np.int64), np.zeros(0, np.int64))
    top, top_degrees = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for start, degrees in _degree_chunks(graph):
        values, nodes = np.unique(degrees, return_counts=True)
        merged, index = np.unique(np.concatenate([table.degrees, values]), return_inverse=True)
        total = np.zeros(len(merged), np.int64)
        np.add.at(total, index, np.concatenate([table.nodes, nodes]))
        table = DegreeTable(merged, total)
        # nodes of earlier chunks come first, so that equal degrees stay in index order
        best = _largest(degrees)
        top = np.concatenate([top, best + start])
        top_degrees = np.concatenate([top_degrees, degrees[best]])
        chosen = _largest(top_degrees)
        top, top_degrees = top[chosen], top_degrees[chosen]
    return table, top[top_degrees > 0]


def _largest(values: Array) -> Array:
    """Places of the TOP_HUBS largest values, descending; equal ones in their order."""
    count = min(TOP_HUBS, len(values))
    least = np.partition(values, -count)[-count]
    above = np.flatnonzero(values > least)
    equal = np.flatnonzero(values == least)[: count - len(above)]
    chosen = np.concatenate([above, equal])
    return chosen[np.lexsort((chosen, -values[chosen]))]


def _component_sizes(graph: GraphStore) -> tuple[int, list[int]]:
    """The number of components, and the nodes of the largest ones."""
    if not graph.num_nodes:
        return 0, []
    count, labels = connected_components(graph)
    sizes = np.bincount(labels, minlength=count)
    return count, np.sort(sizes)[::-1][:TOP_COMPONENTS].tolist()


def _name_hubs(folder: Path, graph: GraphStore, top: Array) -> list[Hub]:
    names: list[Any] = [None] * len(top)
    if GraphIds.stored(folder):
        node_ids = GraphIds.open(folder)
        if len(node_ids) != graph.num_nodes:
            raise ArtifactMismatch.of(
                what=f"the node ids and the graph of {folder}",
                found=f"{len(node_ids):,} ids",
                needed=f"{graph.num_nodes:,}",
            )
        names = plain_ids(node_ids, top)
    return [
        Hub(name, node, int(graph.indptr[node + 1] - graph.indptr[node]))
        for name, node in zip(names, top.tolist(), strict=True)
    ]


def plain_ids(node_ids: GraphIds, indices: Array) -> list[Any]:
    """What the user calls the given nodes, JSON-ready: bytes become hexadecimal digits."""
    ids = node_ids.take(indices).to_pylist()
    return [value.hex() if isinstance(value, bytes) else value for value in ids]
