"""Candidates by short walks, against products of dense matrices."""

import numpy as np
import pytest

from peg_core.inference import nearby_partners as module
from peg_core.inference.list_side import ListSide
from peg_core.inference.nearby_nodes import NO_NODE, nearby_nodes
from peg_core.inference.nearby_partners import nearby_partners
from tests.fixtures.relational_graphs import SHAPES, listed_graph

NODES = 60


def expected(listed, side, allowed=None):
    """Node -> its partners by the weight of walks, of dense matrices."""
    graph = listed.graph
    edges = graph.adjacency(np.float64).toarray()
    edges = (edges > 0).astype(float)
    degrees = np.maximum(edges.sum(axis=1), 1)
    steps = edges / degrees  # column j: from j to its neighbours in equal parts
    two = steps @ edges
    weights = two + edges
    if not side.partners.one_kind:
        onward = two.copy()
        np.fill_diagonal(onward, 0)
        weights = weights + steps @ onward
    target = graph.relations.predicted
    links = np.zeros((NODES, NODES), dtype=bool)
    links[tuple(listed.links[target])] = True
    if not graph.is_directed:
        links |= links.T
    known = links.T if side.turned else links
    found = {}
    for node in range(side.partners.first_anchor, side.partners.last_anchor):
        free = [
            other
            for other in range(side.partners.first, side.partners.last)
            if other != node and not known[node, other] and weights[other, node] > 0
            if allowed is None or allowed[other]
        ]
        found[node] = sorted(free, key=lambda o: (-round(weights[o, node], 12), o))
    return found


def rows(found):
    return [row[row != NO_NODE].tolist() for row in found]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("some", [False, True])
def test_partners_come_by_the_weight_of_walks(shape, turned, some):
    listed = listed_graph(shape, num_nodes=NODES, num_links=70, seed=3)
    relations = listed.graph.relations
    kind = (relations.target.source_kind, relations.target.target_kind)[turned]
    (side,) = ListSide.of(listed.graph, kind)
    allowed = np.random.default_rng(0).random(NODES) < 0.5 if some else None
    wanted = expected(listed, side, allowed)
    nodes = np.array(list(wanted))
    found = nearby_partners(listed.graph, listed.graph, nodes, side, count=9, allowed=allowed)
    assert rows(found) == [best[:9] for best in wanted.values()]
    assert any(wanted.values())


def test_without_relations_allowed_nodes_are_those_of_two_steps(two_communities):
    (side,) = ListSide.of(two_communities)
    nodes = np.arange(two_communities.num_nodes)
    everyone = nearby_nodes(two_communities, two_communities, nodes, count=len(nodes))
    allowed = nodes % 3 == 0
    found = nearby_partners(
        two_communities, two_communities, nodes, side, count=len(nodes), allowed=allowed
    )
    wanted = [[node for node in row if allowed[node]] for row in rows(everyone)]
    assert [sorted(row) for row in rows(found)] == [sorted(row) for row in wanted]


def test_a_small_table_gives_the_same_and_hubs_are_looked_at_in_part(monkeypatch):
    listed = listed_graph("bipartite", num_nodes=3_000, num_links=9_000, seed=1)
    (side,) = ListSide.of(listed.graph)
    nodes = np.arange(side.partners.first_anchor, side.partners.first_anchor + 200)
    monkeypatch.setattr(module, "ROW_LIMIT", 8)  # a table of 512 places, and of all nodes
    found = nearby_partners(listed.graph, listed.graph, nodes, side, count=20)
    monkeypatch.setattr(module, "find_table_size", lambda num_nodes: num_nodes)
    np.testing.assert_array_equal(
        found, nearby_partners(listed.graph, listed.graph, nodes, side, count=20)
    )
    assert (found[found != NO_NODE] < side.partners.last).all()
