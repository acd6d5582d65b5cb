"""Graphs with known difficulties, and their spectra by dense linear algebra."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import networkx as nx
import numpy as np
import pytest

from peg_core.graph.graph_store import GraphStore
from peg_core.kernels.thread_spans import one_blas_thread


def store(graph: nx.Graph) -> GraphStore:
    graph = nx.convert_node_labels_to_integers(graph)
    ends = np.array(list(graph.edges()), dtype=np.int64).reshape(-1, 2)
    return GraphStore.from_edges(ends[:, 0], ends[:, 1], num_nodes=graph.number_of_nodes())


def largest(graph: nx.Graph) -> nx.Graph:
    return graph.subgraph(max(nx.connected_components(graph), key=len))


def weighted(graph: GraphStore, seed: int) -> GraphStore:
    source, target = graph.edges()
    weights = np.random.default_rng(seed).uniform(0.1, 5.0, len(source))
    return GraphStore.from_edges(source, target, num_nodes=graph.num_nodes, weights=weights)


def random_blocks(size: int = 80, inside: float = 0.12) -> nx.Graph:
    across = 0.004
    chances = np.full((10, 10), across) + np.eye(10) * (inside - across)
    return nx.stochastic_block_model([size] * 10, chances, seed=1)


CONNECTED: dict[str, Callable[[], GraphStore]] = {
    "random": lambda: store(largest(nx.fast_gnp_random_graph(900, 0.012, seed=5))),
    "blocks": lambda: store(largest(random_blocks())),
    "powerlaw": lambda: store(nx.barabasi_albert_graph(1200, 3, seed=2)),
    "bipartite": lambda: store(
        largest(nx.bipartite.random_graph(400, 400, 0.02, seed=4)),
    ),
    "star": lambda: store(nx.star_graph(700)),
    "grid": lambda: store(nx.grid_2d_graph(24, 31)),
    "cycle": lambda: store(nx.cycle_graph(640)),
    "complete": lambda: store(nx.complete_graph(600)),
    "path": lambda: store(nx.path_graph(620)),
    "weighted": lambda: weighted(store(largest(random_blocks())), seed=9),
}


def disconnected_graph() -> GraphStore:
    """One large component, 41 small ones, 7 isolated nodes; node order shuffled."""
    parts = [largest(nx.fast_gnp_random_graph(700, 0.012, seed=5))]
    parts += [nx.cycle_graph(5 + i % 7) for i in range(20)]
    parts += [nx.path_graph(2 + i % 4) for i in range(20)]
    parts += [largest(nx.fast_gnp_random_graph(540, 0.02, seed=6))]
    parts += [nx.empty_graph(7)]
    graph = store(nx.disjoint_union_all(parts))
    order = np.random.default_rng(0).permutation(graph.num_nodes)
    source, target = graph.edges()
    return GraphStore.from_edges(order[source], order[target], num_nodes=graph.num_nodes)


def dense_laplacian(graph: GraphStore) -> np.ndarray:
    """``I - D^-1/2 A D^-1/2`` by its definition."""
    adjacency = graph.adjacency(np.float64).toarray()
    degrees = adjacency.sum(axis=1)
    inverse = np.zeros_like(degrees)
    inverse[degrees > 0] = degrees[degrees > 0] ** -0.5
    return np.eye(len(degrees)) - inverse[:, None] * adjacency * inverse[None, :]


def sine_of_largest_angle(first: np.ndarray, second: np.ndarray) -> float:
    """Between the column spaces, from the projector of the one applied to the other."""
    first, _ = np.linalg.qr(first.astype(np.float64))
    second, _ = np.linalg.qr(second.astype(np.float64))
    return float(np.linalg.norm(second - first @ (first.T @ second), 2))


@pytest.fixture(autouse=True, scope="session")
def _quiet_blas() -> Iterator[None]:
    """Threads that wait for each other make the dense references slow on busy machines."""
    with one_blas_thread():
        yield


@pytest.fixture(scope="session")
def connected_graphs() -> dict[str, GraphStore]:
    return {name: build() for name, build in CONNECTED.items()}


@pytest.fixture(scope="session")
def dense_spectra(connected_graphs) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    return {name: np.linalg.eigh(dense_laplacian(g)) for name, g in connected_graphs.items()}


@pytest.fixture(scope="session")
def disconnected() -> GraphStore:
    return disconnected_graph()
