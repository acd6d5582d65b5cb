import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from peg_core.sampling.neighbour_sampler import NeighbourSampler


@given(
    seed=st.integers(0, 10**6),
    fan_outs=st.lists(st.sampled_from([-1, 1, 3, 8]), min_size=1, max_size=3),
)
def test_samples_are_distinct_neighbours_of_every_node_on_the_way(to_store, seed, fan_outs):
    graph = to_store(nx.gnm_random_graph(60, 300, seed=seed % 7))
    seeds = np.random.default_rng(seed).permutation(60)[:9]
    found = NeighbourSampler(graph, fan_outs).sample(seeds, seed=seed)
    assert len(set(found.nodes.tolist())) == len(found.nodes)
    np.testing.assert_array_equal(found.nodes[:9], seeds)
    hop_of = np.searchsorted(found.counts, np.arange(found.counts[-2]), side="right")
    for row in range(found.counts[-2]):
        node = found.nodes[row]
        part = slice(found.indptr[row], found.indptr[row + 1])
        neighbours = set(graph.indices[graph.indptr[node] : graph.indptr[node + 1]].tolist())
        drawn = found.nodes[found.sources[part]].tolist()
        fan_out = fan_outs[hop_of[row]]
        expected = len(neighbours) if fan_out == -1 else min(fan_out, len(neighbours))
        assert len(drawn) == len(set(drawn)) == expected
        assert set(drawn) <= neighbours
        assert (
            found.scale[row] * expected == pytest.approx(len(neighbours), rel=1e-5) or not expected
        )
        np.testing.assert_array_equal(graph.indices[found.entries[part]], drawn)


def test_all_neighbours_reach_what_breadth_first_search_reaches(to_store):
    nxg = nx.gnm_random_graph(80, 120, seed=2)
    found = NeighbourSampler(to_store(nxg), [-1, -1]).sample(np.array([5]), seed=0)
    assert set(found.nodes.tolist()) == set(nx.single_source_shortest_path_length(nxg, 5, cutoff=2))


def test_every_neighbour_is_drawn_equally_often(to_store):
    graph = to_store(nx.star_graph(10))
    sampler = NeighbourSampler(graph, [3])
    counts = np.zeros(11)
    for seed in range(4000):
        found = sampler.sample(np.array([0]), seed=seed)
        counts[found.nodes[found.sources]] += 1
    expected = 4000 * 3 / 10
    assert np.abs(counts[1:] - expected).max() < 5 * np.sqrt(expected)


def test_one_seed_one_sample_whatever_came_before(to_store):
    graph = to_store(nx.gnm_random_graph(60, 400, seed=1))
    used, fresh = NeighbourSampler(graph, [4, 4]), NeighbourSampler(graph, [4, 4])
    for seed in range(5):
        used.sample(np.arange(10), seed=seed)
    first, second = (s.sample(np.arange(7), seed=9) for s in (used, fresh))
    np.testing.assert_array_equal(first.nodes, second.nodes)
    np.testing.assert_array_equal(first.entries, second.entries)


def test_excluded_edges_do_not_appear(to_store):
    graph = to_store(nx.complete_graph(12))
    keys = np.sort(np.array([0 * 12 + 1, 1 * 12 + 0]))
    found = NeighbourSampler(graph, [-1, -1]).sample(np.array([0, 1]), seed=0, excluded=keys)
    rows = np.repeat(found.nodes[: len(found.indptr) - 1], np.diff(found.indptr))
    edges = set(zip(rows.tolist(), found.nodes[found.sources].tolist(), strict=True))
    assert (0, 1) not in edges
    assert (1, 0) not in edges
    assert len(edges) == 12 * 11 - 2


def test_a_fan_out_of_zero_is_refused(to_store):
    with pytest.raises(ValueError, match="fan-out is 0"):
        NeighbourSampler(to_store(nx.path_graph(3)), [5, 0])
