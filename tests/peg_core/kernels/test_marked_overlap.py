import math

import numpy as np
import pytest

from peg_core.graph.graph_store import GraphStore
from peg_core.kernels import marked_overlap
from peg_core.kernels.marked_overlap import pair_overlaps

NODES, MORE = 300, 4_000


@pytest.fixture(scope="module")
def hubs():
    """Rows of 3 to 3,000 entries over common neighbours, and links between the hubs."""
    rng = np.random.default_rng(7)
    lengths = np.minimum(3_000, (40 / (rng.random(NODES) + 0.01)).astype(int))
    source = np.repeat(np.arange(NODES), lengths)
    target = np.concatenate([NODES + rng.choice(MORE, size=n, replace=False) for n in lengths])
    links = rng.integers(0, NODES, size=(2, 2_000))
    links = links[:, links[0] != links[1]]
    ends = np.concatenate([source, links[0]]), np.concatenate([target, links[1]])
    return GraphStore.from_edges(*ends, num_nodes=NODES + MORE)


def overlaps(graph, source, target):
    return pair_overlaps(graph.indptr, graph.indices, source, target)


def by_sets(graph, u, v):
    """The sums of a pair, a common neighbour at a time, in their order."""
    rows = [set(graph.neighbours(node).tolist()) for node in (u, v)]
    degrees = [len(graph.neighbours(node)) for node in sorted(rows[0] & rows[1])]
    adamic_adar = allocation = 0.0
    for degree in degrees:
        adamic_adar += 1 / math.log(degree)
        allocation += 1 / degree
    return [len(degrees), adamic_adar, allocation, float(v in rows[0])]


@pytest.fixture(scope="module")
def pairs():
    """Many pairs of some hubs, few of others, both ways round."""
    rng = np.random.default_rng(3)
    ends = np.minimum(NODES - 1, (NODES * rng.random((2, 3_000)) ** 2).astype(np.int64))
    return ends[:, ends[0] != ends[1]]


@pytest.mark.parametrize("weights", [2, 65_536])
def test_overlaps_are_those_of_sets_whatever_the_degrees(hubs, pairs, weights, monkeypatch):
    table = marked_overlap._weights()[:weights]
    monkeypatch.setattr(marked_overlap, "_weights", lambda: table)
    expected = [by_sets(hubs, u, v) for u, v in pairs.T.tolist()]
    np.testing.assert_allclose(overlaps(hubs, *pairs), expected, rtol=1e-15)


def test_a_pair_has_the_same_bits_alone_and_beside_others(hubs, pairs):
    together = overlaps(hubs, *pairs)
    alone = [overlaps(hubs, *pairs[:, i : i + 1])[0] for i in range(pairs.shape[1])]
    np.testing.assert_array_equal(together, alone)


def test_both_ways_round_are_the_same(hubs, pairs):
    np.testing.assert_array_equal(overlaps(hubs, *pairs), overlaps(hubs, *pairs[::-1]))


def test_no_pairs_have_no_overlaps(hubs):
    nothing = np.empty(0, dtype=np.int64)
    assert overlaps(hubs, nothing, nothing).shape == (0, 4)
