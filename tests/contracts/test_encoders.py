"""Laws that every registered encoder obeys."""

import json

import networkx as nx
import numpy as np
import pytest

from peg_core.encoding import ENCODERS
from peg_core.errors import GraphTooSmall

every_encoder = pytest.mark.parametrize("kind", ENCODERS)


def gram(positions):
    """What PEG reads: all inner products."""
    return positions @ positions.T


@every_encoder
def test_positions_are_shaped_finite_and_reproducible(kind, two_communities):
    encoder = ENCODERS[kind](dimensions=8)
    first = encoder.encode(two_communities, seed=7)
    assert first.shape == (two_communities.num_nodes, 8)
    assert first.dtype == np.float32
    assert np.isfinite(first).all()
    again = encoder.encode(two_communities, seed=7)
    np.testing.assert_allclose(gram(first), gram(again), atol=1e-5)


@every_encoder
def test_the_report_is_json(kind, two_communities):
    json.dumps(ENCODERS[kind](dimensions=8).solve(two_communities, seed=0).report)


@every_encoder
def test_isolated_nodes_and_small_components_are_placed(kind, to_store):
    nxg = nx.disjoint_union_all([nx.path_graph(2), nx.cycle_graph(5), nx.empty_graph(3)])
    positions = ENCODERS[kind](dimensions=4).encode(to_store(nxg), seed=0)
    assert positions.shape == (10, 4)
    assert np.isfinite(positions).all()


@every_encoder
def test_a_graph_of_one_node_is_refused(kind, to_store):
    with pytest.raises(GraphTooSmall, match="needs at least"):
        ENCODERS[kind](dimensions=4).encode(to_store(nx.empty_graph(1)), seed=0)


@every_encoder
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"dimension": 4}, "did you mean 'dimensions'"),
        ({"dimensions": 0}, "dimensions"),
        ({"dimensions": 1.5}, "dimensions"),
    ],
)
def test_wrong_parameters_are_refused(kind, parameters, message):
    with pytest.raises(ValueError, match=message):
        ENCODERS[kind].check_parameters(parameters)


@every_encoder
def test_neighbours_are_closer_than_strangers(kind, two_communities):
    positions = ENCODERS[kind](dimensions=8).encode(two_communities, seed=0)
    inner = gram(positions)
    same = np.equal.outer(np.arange(60) // 30, np.arange(60) // 30) & ~np.eye(60, dtype=bool)
    other = ~np.equal.outer(np.arange(60) // 30, np.arange(60) // 30)
    assert inner[same].mean() > inner[other].mean()
