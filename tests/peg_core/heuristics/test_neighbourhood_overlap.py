import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from peg_core.graph.graph_store import GraphStore
from peg_core.heuristics.neighbourhood_overlap import neighbourhood_overlap


@given(st.integers(0, 10**6), st.sampled_from([0.02, 0.2, 0.7]))
def test_overlap_equals_networkx(to_store, seed, density):
    nxg = nx.gnp_random_graph(30, density, seed=seed)
    pairs = [(u, v) for u in range(30) for v in range(30) if u != v]
    source, target = np.array(pairs).T
    found = neighbourhood_overlap(to_store(nxg), source, target)
    common = [len(list(nx.common_neighbors(nxg, u, v))) for u, v in pairs]
    adamic = [score for *_, score in nx.adamic_adar_index(nxg, pairs)]
    allocation = [score for *_, score in nx.resource_allocation_index(nxg, pairs)]
    np.testing.assert_allclose(found, np.array([common, adamic, allocation]).T, atol=1e-12)


def test_overlap_of_hubs_equals_sets():
    rng = np.random.default_rng(7)
    # rows of all lengths, so that steps double, halve and end anywhere in a block
    lengths = np.minimum(3_000, (40 / (rng.random(300) + 0.01)).astype(int))
    source = np.repeat(np.arange(300), lengths)
    target = np.concatenate([300 + rng.choice(4_000, size=n, replace=False) for n in lengths])
    graph = GraphStore.from_edges(source, target, num_nodes=4_300)
    first, second = rng.integers(0, 300, size=(2, 2_000))
    rows = [set(graph.neighbours(node).tolist()) for node in range(300)]
    expected = [len(rows[u] & rows[v]) for u, v in zip(first, second, strict=True)]
    np.testing.assert_array_equal(neighbourhood_overlap(graph, first, second)[:, 0], expected)
