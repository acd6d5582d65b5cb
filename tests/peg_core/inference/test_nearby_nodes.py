import networkx as nx
import numpy as np
import pytest

from peg_core.inference import nearby_nodes as module
from peg_core.inference.nearby_nodes import NO_NODE, nearby_nodes


@pytest.fixture(scope="module")
def graph():
    return nx.gnm_random_graph(80, 240, seed=4)


def test_the_best_by_resource_allocation_come_first(graph, to_store):
    store = to_store(graph)
    found = nearby_nodes(store, store, np.arange(80), count=7)
    for node in range(80):
        strangers = [v for v in graph if v != node and not graph.has_edge(node, v)]
        index = nx.resource_allocation_index(graph, [(node, v) for v in strangers])
        ranked = sorted((-round(score, 12), v) for _, v, score in index if score)
        expected = [v for _, v in ranked][:7]
        assert found[node].tolist() == expected + [NO_NODE] * (7 - len(expected))


def test_known_edges_that_are_not_walked_are_left_out_too(to_store):
    path = to_store(nx.path_graph(3))
    triangle = to_store(nx.complete_graph(3))
    assert nearby_nodes(path, path, np.array([0]), count=2).tolist() == [[2, NO_NODE]]
    assert nearby_nodes(path, triangle, np.array([0]), count=2).tolist() == [[NO_NODE, NO_NODE]]


def test_hubs_are_looked_at_in_part_and_always_the_same(to_store, monkeypatch):
    star = to_store(nx.star_graph(300))
    monkeypatch.setattr(module, "ROW_LIMIT", 50)
    found = nearby_nodes(star, star, np.array([1]), count=400)
    strangers = found[0][found[0] != NO_NODE]
    assert 45 <= len(strangers) <= 50
    assert strangers.max() > 250
    np.testing.assert_array_equal(found, nearby_nodes(star, star, np.array([1]), count=400))


def test_a_table_smaller_than_the_graph_gives_the_same_answer(to_store, monkeypatch):
    monkeypatch.setattr(module, "ROW_LIMIT", 6)
    graph = nx.random_regular_graph(5, 3_000, seed=1)
    store = to_store(graph)
    found = nearby_nodes(store, store, np.arange(3_000), count=30)
    for node in range(3_000):
        index = nx.resource_allocation_index(
            graph, [(node, v) for v in nx.descendants_at_distance(graph, node, 2)]
        )
        expected = [v for _, v in sorted((-round(score, 12), v) for _, v, score in index)]
        assert found[node].tolist() == expected + [NO_NODE] * (30 - len(expected))
