import networkx as nx
import numpy as np
import pytest

from peg_core.graph.graph_store import GraphStore
from peg_core.heuristics import HEURISTICS, heuristic_scores
from peg_core.heuristics.katz import DAMPING, katz_index
from peg_core.heuristics.personalised_pagerank import pagerank_proximity
from peg_core.kernels.pagerank_push import RESTART


@pytest.fixture(scope="module")
def graph():
    """A connected part, a path apart and an isolated node."""
    one = nx.gnm_random_graph(40, 90, seed=2)
    return nx.disjoint_union_all([one, nx.path_graph(4), nx.empty_graph(1)])


@pytest.fixture(scope="module")
def store(graph, to_store):
    return to_store(graph)


@pytest.fixture(scope="module")
def all_pairs(graph):
    """Every ordered pair of distinct nodes, in no order."""
    n = graph.number_of_nodes()
    source, target = np.divmod(np.random.default_rng(0).permutation(n * n), n)
    return source[source != target], target[source != target]


@pytest.mark.parametrize(
    ("name", "peer"),
    [
        ("common_neighbours", lambda g, pairs: [len(nx.common_neighbors(g, *p)) for p in pairs]),
        ("adamic_adar", lambda g, pairs: [s for *_, s in nx.adamic_adar_index(g, pairs)]),
        (
            "resource_allocation",
            lambda g, pairs: [s for *_, s in nx.resource_allocation_index(g, pairs)],
        ),
        (
            "preferential_attachment",
            lambda g, pairs: [s for *_, s in nx.preferential_attachment(g, pairs)],
        ),
    ],
)  # fmt: skip
def test_overlaps_and_degrees_equal_networkx(graph, store, all_pairs, name, peer):
    expected = peer(graph, list(zip(*(end.tolist() for end in all_pairs), strict=True)))
    np.testing.assert_allclose(HEURISTICS[name](store, *all_pairs), expected)


def test_katz_is_the_sum_of_four_matrix_powers(store, all_pairs):
    adjacency = store.adjacency(np.float64).toarray()
    expected = sum(
        DAMPING**length * np.linalg.matrix_power(adjacency, length) for length in (1, 2, 3, 4)
    )
    np.testing.assert_allclose(katz_index(store, *all_pairs), expected[all_pairs])


def test_pagerank_is_the_dense_solution_within_its_tolerance(store, all_pairs):
    adjacency = store.adjacency(np.float64).toarray()
    degrees = adjacency.sum(axis=1)
    walk = adjacency / np.maximum(degrees, 1)[:, None]
    dense = RESTART * np.linalg.inv(np.eye(len(walk)) - (1 - RESTART) * walk)
    expected = (dense + dense.T)[all_pairs]
    exact = pagerank_proximity(store, *all_pairs, tolerance=1e-12)
    np.testing.assert_allclose(exact, expected, atol=1e-9)
    rough = pagerank_proximity(store, *all_pairs, tolerance=1e-4)
    source, target = all_pairs
    assert (rough <= expected + 1e-12).all()
    assert (expected - rough <= 1e-4 * (degrees[source] + degrees[target]) + 1e-12).all()


def test_networkx_agrees_on_pagerank(graph, store):
    target = np.arange(1, 40)
    found = pagerank_proximity(store, np.zeros(39, np.int64), target, tolerance=1e-12)
    here = nx.pagerank(graph, alpha=1 - RESTART, personalization={0: 1}, tol=1e-14, max_iter=1000)
    degree = dict(graph.degree())
    expected = [here[v] * (1 + degree[0] / max(degree[v], 1)) for v in target.tolist()]
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_all_heuristics_come_by_name_and_are_symmetric(store, all_pairs):
    there = heuristic_scores(HEURISTICS, store, *all_pairs)
    back = heuristic_scores(HEURISTICS, store, *all_pairs[::-1])
    assert list(there) == list(HEURISTICS)
    for name, scores in there.items():
        tolerance = 0.01 if name == "personalised_pagerank" else 1e-12
        np.testing.assert_allclose(scores, back[name], atol=tolerance)
    only = heuristic_scores(["katz"], store, *all_pairs)
    assert list(only) == ["katz"]


def test_no_pairs_no_scores():
    graph = GraphStore.from_edges([0], [1], num_nodes=2)
    nothing = np.zeros(0, np.int64)
    for scores in heuristic_scores(HEURISTICS, graph, nothing, nothing).values():
        assert len(scores) == 0
