import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from peg_core.errors import GraphTooSmall
from peg_core.splits.negative_sampling import NegativeSampler, sample_non_edges


@given(st.integers(0, 1000), st.sampled_from([0.05, 0.5, 0.9]))
def test_negatives_are_distinct_pairs_without_an_edge(to_store, seed, density):
    nxg = nx.gnp_random_graph(25, density, seed=seed)
    count = min(40, nx.number_of_edges(nx.complement(nxg)))
    source, target = sample_non_edges(to_store(nxg), count, rng=np.random.default_rng(seed))
    found = list(zip(source.tolist(), target.tolist(), strict=True))
    assert len(set(found)) == count == len(found)
    assert all(u < v and not nxg.has_edge(u, v) for u, v in found)


def test_all_non_edges_can_be_asked_for(to_store):
    nxg = nx.gnp_random_graph(12, 0.5, seed=1)
    rest = set(nx.complement(nxg).edges())
    source, target = sample_non_edges(to_store(nxg), len(rest), rng=np.random.default_rng(0))
    assert set(zip(source.tolist(), target.tolist(), strict=True)) == rest


def test_more_than_there_are_is_refused(to_store):
    with pytest.raises(GraphTooSmall, match=r"5 negative pairs were asked for, .* only 0"):
        sample_non_edges(to_store(nx.complete_graph(5)), 5, rng=np.random.default_rng(0))


def test_every_non_edge_is_as_likely_as_the_others(to_store):
    graph = to_store(nx.path_graph(6))
    counts = np.zeros((6, 6))
    for seed in range(4000):
        source, target = sample_non_edges(graph, 1, rng=np.random.default_rng(seed))
        counts[source, target] += 1
    seen = counts[counts > 0]
    assert len(seen) == 10
    assert seen.min() > 300
    assert seen.max() < 500


@pytest.mark.parametrize("kind", ["uniform", "degree", "hard"])
def test_training_negatives_are_no_edges_and_no_loops(to_store, kind):
    graph = to_store(nx.barabasi_albert_graph(200, 4, seed=0))
    source, target = graph.edges()
    rng = np.random.default_rng(0)
    found = NegativeSampler(graph, kind).draw(source, target, rng=rng)
    assert len(found[0]) == len(found[1]) == len(source)
    assert not graph.contains(*found).any()
    assert (found[0] != found[1]).all()


def test_hard_negatives_share_a_neighbour_and_degree_ones_prefer_hubs(to_store):
    nxg = nx.barabasi_albert_graph(300, 3, seed=0)
    graph = to_store(nxg)
    source, target = graph.edges()
    pairs = {
        kind: NegativeSampler(graph, kind).draw(source, target, rng=np.random.default_rng(1))
        for kind in ("uniform", "degree", "hard")
    }
    hard = zip(*(end.tolist() for end in pairs["hard"]), strict=True)
    assert np.mean([bool(list(nx.common_neighbors(nxg, u, v))) for u, v in hard]) > 0.99
    degrees = graph.degrees
    assert degrees[pairs["degree"][1]].mean() > 1.3 * degrees[pairs["uniform"][1]].mean()


def test_a_complete_neighbourhood_is_filled_up_with_other_pairs(to_store):
    graph = to_store(nx.disjoint_union(nx.complete_graph(5), nx.path_graph(10)))
    source, target = np.zeros(3, np.int64), np.ones(3, np.int64)
    found = NegativeSampler(graph, "hard").draw(source, target, rng=np.random.default_rng(0))
    assert not graph.contains(*found).any()


def test_an_unknown_kind_is_refused(to_store):
    with pytest.raises(ValueError, match="negatives are 'easy'"):
        NegativeSampler(to_store(nx.path_graph(3)), "easy")
