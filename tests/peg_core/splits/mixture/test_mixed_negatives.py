import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peg_core.errors import LeakFound
from peg_core.graph.node_features import NodeFeatures
from peg_core.heuristics.neighbourhood_overlap import neighbourhood_overlap
from peg_core.splits.entry_chunk import find_entries
from peg_core.splits.mixture.mixed_negatives import MixedNegatives, Mixture
from peg_core.splits.mixture.negative_pools import NegativePools
from peg_core.splits.negative_sampling import NegativeSampler
from peg_core.splits.partners import Partners
from tests.fixtures.relational_graphs import SHAPES, listed_graph


@pytest.fixture(scope="module")
def graph(to_store):
    return to_store(nx.connected_watts_strogatz_graph(160, 4, 0.2, seed=3))


@pytest.fixture(scope="module")
def pools(graph):
    x = (np.random.default_rng(1).random((160, 50)) < 0.05).astype(np.float32)
    return NegativePools.of(graph, NodeFeatures("node", x), seed=0)


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), uniform=st.floats(0, 1), hard=st.floats(0.01, 1))
def test_no_edge_and_no_loop_is_drawn_whatever_the_mixture(graph, pools, seed, uniform, hard):
    drawing = MixedNegatives(graph, Mixture(uniform, 1.0, hard), pools)
    links = graph.edges()
    source, target = drawing.draw(*links, rng=np.random.default_rng(seed))
    assert len(source) == len(target) == len(links[0])
    assert (source != target).all()
    assert not graph.contains(source, target).any()


def draw_many(graph, pools, mixture):
    source, target = (np.tile(end, 40).astype(np.int64) for end in graph.edges())
    return (source, target), MixedNegatives(graph, mixture, pools).draw(
        source, target, rng=np.random.default_rng(5)
    )


def test_a_corrupted_link_keeps_one_end_of_it(graph):
    (source, target), (first, second) = draw_many(graph, None, Mixture(corrupt=1))
    left, right = first == source, second == target
    assert (left ^ right).all()
    assert left.mean() == pytest.approx(0.5, abs=0.02)
    others = np.where(left, second, first)
    assert len(np.unique(others)) == graph.num_nodes
    assert np.bincount(others).max() < 3 * np.bincount(others).mean()


def test_hard_ones_are_close_by_one_of_the_heuristics_in_equal_parts(graph, pools):
    (source, _), (first, second) = draw_many(graph, pools, Mixture(hard=1))
    kept, other = np.where(first == source, (first, second), (second, first))
    squared = graph.adjacency().toarray() @ graph.adjacency().toarray() > 0
    close = [
        np.array([o in pool[k] for k, o in zip(kept, other, strict=True)]) for pool in pools.pools
    ]
    two_steps = squared[kept, other]
    assert (close[0] | close[1] | two_steps).mean() > 0.99
    by_features_alone = close[1] & ~close[0] & ~two_steps
    assert 0.05 < by_features_alone.mean() < 0.34


def test_shares_are_kept(graph, pools):
    (source, target), (first, second) = draw_many(graph, pools, Mixture(uniform=3, corrupt=1))
    assert ((first == source) | (second == target)).mean() == pytest.approx(0.25, abs=0.03)


def test_pools_with_a_training_link_are_refused(graph, pools):
    broken = NegativePools(tuple(pool.copy() for pool in pools.pools), pools.sizes)
    broken.pools[0][0, 0] = graph.neighbours(0)[0]
    with pytest.raises(LeakFound, match="pools of hard non-links"):
        MixedNegatives(graph, Mixture(hard=1), broken)
    with pytest.raises(ValueError, match="hard non-links need pools"):
        MixedNegatives(graph, Mixture(hard=1))
    with pytest.raises(ValueError, match="needed are numbers above 0"):
        MixedNegatives(graph, Mixture())


def test_neighbours_of_neighbours_alone_teach_that_common_neighbours_speak_against_a_link(to_store):
    """All of them have one; of the links themselves, without their batch, only some do."""
    graph = to_store(nx.connected_watts_strogatz_graph(400, 4, 0.5, seed=1))
    rng = np.random.default_rng(0)
    source, target = (np.asarray(end, dtype=np.int64) for end in graph.edges())
    batch = rng.permutation(len(source))[:80]
    keep = np.ones(len(graph.indices), dtype=bool)
    for ends in ((source, target), (target, source)):
        keep[find_entries(graph, ends[0][batch], ends[1][batch])] = False
    left = graph.filter_entries(keep)

    def share(first, second):
        return (neighbourhood_overlap(left, first, second)[:, 0] > 0).mean()

    links = share(source[batch], target[batch])
    pools = NegativePools.of(graph, NodeFeatures("degree"), seed=0)
    two_steps = share(*NegativeSampler(graph, "hard").draw(source, target, rng=rng))
    mixture = Mixture(corrupt=0.75, hard=0.25)
    mixed = share(*MixedNegatives(graph, mixture, pools).draw(source, target, rng=rng))
    assert two_steps > 0.8  # but for those whose common neighbour the batch took away
    assert mixed < links < two_steps / 2


@pytest.mark.parametrize("shape", SHAPES)
def test_pairs_are_of_the_kinds_that_a_link_joins(shape):
    graph = listed_graph(shape, num_nodes=60, num_links=200, seed=2).graph
    pools = NegativePools.of(graph, NodeFeatures("degree"), seed=0)
    partners = Partners.of(graph)
    rng = np.random.default_rng(0)
    links = [np.asarray(end) for end in partners.all_pairs()]
    chosen = graph.contains_link(*links)
    links = [np.tile(end[chosen], 10) for end in links]
    for mixture in (Mixture(corrupt=1), Mixture(hard=1), Mixture(1, 1, 1)):
        source, target = MixedNegatives(graph, mixture, pools).draw(*links, rng=rng)
        assert not graph.contains_link(source, target).any()
        assert (source != target).all()
        possible = set(zip(*(end.tolist() for end in partners.all_pairs()), strict=True))
        found = set(zip(source.tolist(), target.tolist(), strict=True))
        if partners.both_ways:
            found = {tuple(sorted(pair)) for pair in found}
        assert found <= possible
