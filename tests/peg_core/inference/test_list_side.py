"""Whose lists are made, of graphs with and without kinds."""

import re

import numpy as np
import pytest

from peg_core.errors import InputError
from peg_core.graph.graph_store import GraphStore
from peg_core.inference.conditions import Conditions, pair_keys
from peg_core.inference.list_side import ListSide
from tests.fixtures.relational_graphs import listed_graph


def graph_of(shape):
    return listed_graph(shape, num_nodes=30, num_links=40, seed=0).graph


def test_both_sides_of_a_bipartite_graph():
    users, items = ListSide.of(graph_of("bipartite"), "both")
    assert (users.kind, users.turned, users.rows(30)) == ("user", False, (0, 10))
    assert (items.kind, items.turned, items.rows(30)) == ("item", True, (10, 30))
    assert (
        ListSide.of(graph_of("bipartite")) == ListSide.of(graph_of("bipartite"), "user") == [users]
    )
    node, candidate = np.array([3]), np.array([12])
    assert users.links(candidate, node) == (candidate, node)
    assert items.links(node, candidate) == (candidate, node)
    assert users.holds(np.array([-1, 0, 9, 10])).tolist() == [False, True, True, False]


def test_of_two_relations_only_the_kind_of_the_predicted_one_can_be_on_a_list():
    (side,) = ListSide.of(graph_of("two relations"))
    assert (side.kind, side.turned, side.rows(30)) == ("user", False, (10, 30))


def test_a_plain_graph_has_one_side_without_a_name():
    (side,) = ListSide.of(GraphStore.from_edges([0], [1], num_nodes=3))
    assert (side.kind, side.rows(3)) == (None, None)
    assert side.holds(np.array([-1, 0, 2])).tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("shape", "wanted", "message"),
    [
        ("bipartite", "usr", "is 'usr', links lead from 'user' to 'item'; .* did you mean 'user'?"),
        ("two relations", "item", "is 'item', links lead from 'user' to 'user'"),
        ("directed", "both", "is both, links lead from 'paper' to 'paper'; leave it out"),
    ],
)
def test_a_side_that_links_do_not_have_is_refused(shape, wanted, message):
    with pytest.raises(InputError, match=message):
        ListSide.of(graph_of(shape), wanted)


def test_kinds_are_refused_where_there_are_none():
    graph = GraphStore.from_edges([0], [1], num_nodes=3)
    with pytest.raises(InputError, match=re.escape("the graph has one kind of node")):
        ListSide.of(graph, "user")


def test_conditions_are_those_of_sets_of_pairs():
    rng = np.random.default_rng(1)
    source, target = rng.integers(0, 9, size=(2, 300))
    pairs = rng.integers(0, 9, size=(2, 20))
    allowed = rng.random(9) < 0.7
    excluded = np.unique(pair_keys(*pairs, num_nodes=9))
    found = Conditions(allowed, excluded).permit(source, target, target, num_nodes=9)
    banned = set(zip(*pairs.tolist(), strict=True))
    wanted = [
        (u, v) not in banned and bool(allowed[v])
        for u, v in zip(source.tolist(), target.tolist(), strict=True)
    ]
    assert found.tolist() == wanted
    nothing = Conditions(None, np.zeros(0, dtype=np.int64))
    assert nothing.permit(source, target, target, num_nodes=9).all()
