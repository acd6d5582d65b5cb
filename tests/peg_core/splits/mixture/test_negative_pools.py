import networkx as nx
import numpy as np
import pytest

from peg_core.graph.node_features import NodeFeatures
from peg_core.splits.mixture.negative_pools import POOL_SIZE, NegativePools


@pytest.fixture(scope="module")
def graph(to_store):
    return to_store(nx.connected_watts_strogatz_graph(160, 4, 0.2, seed=3))


def features(graph, *, filled):
    rng = np.random.default_rng(1)
    table = rng.random((graph.num_nodes, 50)) < filled
    return NodeFeatures("node", table.astype(np.float32))


def strangers(graph, node):
    known = {node, *graph.neighbours(node).tolist()}
    return np.array([other for other in range(graph.num_nodes) if other not in known])


def test_the_closest_strangers_by_pagerank(graph):
    pools = NegativePools.of(graph, NodeFeatures("degree"), seed=0)
    walk = graph.adjacency(np.float64).toarray() / graph.degrees[:, None]
    near = 0.15 * np.linalg.inv(np.eye(graph.num_nodes) - 0.85 * walk)
    (pool,) = pools.pools
    for node in range(0, graph.num_nodes, 16):
        others = strangers(graph, node)
        best = np.sort(near[node, others])[::-1][:POOL_SIZE]
        # the push stops at a tolerance: nodes at the end of the list may change places
        np.testing.assert_allclose(near[node, pool[node]], best, atol=2e-4)
        assert np.isin(pool[node], others).all()
        assert len(set(pool[node].tolist())) == POOL_SIZE


@pytest.mark.parametrize("filled", [0.05, 0.4])
def test_the_closest_strangers_by_features(graph, filled):
    given = features(graph, filled=filled)
    pools = NegativePools.of(graph, given, seed=0)
    x = given.table.astype(np.float64)
    cosine = x @ x.T / np.maximum(np.outer(*[np.linalg.norm(x, axis=1)] * 2), 1e-12)
    for node in range(0, graph.num_nodes, 16):
        pool = pools.pools[1][node]
        pool = pool[pool >= 0]
        others = strangers(graph, node)
        best = np.sort(cosine[node, others])[::-1][:POOL_SIZE]
        assert pools.sizes[1][node] == len(pool) == (best > 0).sum()
        np.testing.assert_allclose(cosine[node, pool], best[best > 0], atol=1e-6)
        assert np.isin(pool, others).all()


def test_no_training_link_is_in_a_pool_on_disk_either(graph, tmp_path):
    given = features(graph, filled=0.05)
    pools = NegativePools.of(graph, given, seed=0, folder=tmp_path)
    assert pools.count_links(graph) == 0
    for pool, alike in zip(pools.pools, NegativePools.of(graph, given, seed=0).pools, strict=True):
        np.testing.assert_array_equal(pool, alike)
    pools.pools[0][3, 7] = graph.neighbours(3)[0]
    assert pools.count_links(graph) == 1
