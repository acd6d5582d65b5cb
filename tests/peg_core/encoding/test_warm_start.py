"""Starting vectors for nodes that an earlier encoding did not know."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from peg_core.encoding.warm_start import start_vectors
from peg_core.errors import ArtifactMismatch
from tests.peg_core.encoding.conftest import store


def test_new_nodes_get_the_mean_of_their_neighbours():
    graph = store(nx.path_graph(5))  # degrees 1 2 2 2 1
    earlier = np.array([[1.0], [2.0], [9.0], [4.0], [5.0]])
    known = np.array([True, True, False, True, True])
    found = start_vectors(graph, earlier, known)
    smooth = (2 / np.sqrt(2) + 4 / np.sqrt(2)) / 2
    np.testing.assert_allclose(found[2, 0], smooth * np.sqrt(2), rtol=1e-6)
    np.testing.assert_allclose(found[known], earlier[known])


def test_nodes_behind_new_nodes_are_reached_by_later_sweeps():
    graph = store(nx.path_graph(4))
    known = np.array([True, False, False, False])
    assert (start_vectors(graph, np.ones((4, 2)), known) != 0).all()


def test_nodes_that_no_known_node_reaches_stay_at_zero():
    graph = store(nx.disjoint_union(nx.path_graph(3), nx.path_graph(2)))
    known = np.array([True, True, True, False, False])
    assert (start_vectors(graph, np.ones((5, 2)), known)[3:] == 0).all()


def test_rows_must_match_the_graph():
    with pytest.raises(ArtifactMismatch, match="found 4 rows"):
        start_vectors(store(nx.path_graph(3)), np.ones((4, 2)))
