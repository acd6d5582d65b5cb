import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peg_core.graph.components import connected_components
from peg_core.models.structural_features import structural_features
from tests.fixtures.relational_graphs import graph_of, listed_graph


def features_of(graph, source, target):
    return structural_features(graph, source, target, connected_components(graph)[1])


def test_features_of_a_link_are_those_of_the_graph_without_it(to_store):
    nxg = nx.gnp_random_graph(30, 0.3, seed=2)
    for u, v in list(nxg.edges())[:20]:
        without = nxg.copy()
        without.remove_edge(u, v)
        pair = (np.array([u]), np.array([v]))
        found = features_of(to_store(nxg), *pair)
        np.testing.assert_allclose(found, features_of(to_store(without), *pair))


def test_features_are_symmetric(to_store):
    graph = to_store(nx.gnp_random_graph(30, 0.3, seed=2))
    source, target = np.random.default_rng(0).integers(0, 30, size=(2, 100))
    np.testing.assert_array_equal(
        features_of(graph, source, target), features_of(graph, target, source)
    )


def test_last_column_says_whether_a_path_joins_the_pair(to_store):
    nxg = nx.gnp_random_graph(40, 0.03, seed=5)
    pairs = [(u, v) for u in range(40) for v in range(40) if u != v and not nxg.has_edge(u, v)]
    found = features_of(to_store(nxg), *np.array(pairs).T)[:, -1]
    np.testing.assert_array_equal(found, [nx.has_path(nxg, u, v) for u, v in pairs])


def test_a_link_does_not_join_a_node_that_has_no_other(to_store):
    pendant = to_store(nx.path_graph(3))
    found = features_of(pendant, np.array([0]), np.array([1]))
    assert found[0, -1] == 0


def directed_by_hand(successors, predecessors, u, v):
    """The nine numbers from sets, with u -> v taken out of them."""
    out, into = ({n: set(s) for n, s in side.items()} for side in (successors, predecessors))
    out[u].discard(v)
    into[v].discard(u)
    counts = [
        len(out[u]), len(into[u]), len(out[v]), len(into[v]),
        len(out[u] & into[v]), len(out[v] & into[u]), len(out[u] & out[v]), len(into[u] & into[v]),
    ]  # fmt: skip
    return [*np.log1p(counts), float(u in out[v])]


@pytest.mark.parametrize("shape", ["directed", "two relations"])
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6))
def test_direction_is_counted_as_in_sets_without_the_link_itself(shape, seed):
    graph, links = listed_graph(shape, num_nodes=21, num_links=60, seed=seed)
    source, target = links[graph.relations.predicted]
    successors, predecessors = ({n: set() for n in range(21)} for _ in range(2))
    for u, v in zip(source.tolist(), target.tolist(), strict=True):
        successors[u].add(v)
        predecessors[v].add(u)
    first, second = np.array([(u, v) for u in range(21) for v in range(21) if u != v]).T
    found = features_of(graph, first, second)[:, 6:]
    expected = [
        directed_by_hand(successors, predecessors, u, v)
        for u, v in zip(first.tolist(), second.tolist(), strict=True)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_columns_of_a_link_are_those_of_the_graph_without_it():
    graph, (links,) = listed_graph("directed", num_nodes=21, num_links=60, seed=3)
    for number in range(0, links.shape[1], 4):
        without = graph_of(graph.relations, [np.delete(links, number, axis=1)], 21)
        pair = links[:, [number]]
        alone = features_of(without, *pair)
        if not without.contains(*pair)[0]:  # where the reverse link exists, degrees keep it
            np.testing.assert_allclose(features_of(graph, *pair), alone)
        np.testing.assert_allclose(features_of(graph, *pair)[:, 6:], alone[:, 6:])
