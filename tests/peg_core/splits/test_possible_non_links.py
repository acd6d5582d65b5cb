"""Whatever draws non-links draws pairs that might be links: counted by sets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peg_core.errors import GraphTooSmall
from peg_core.splits.hard_negatives import NO_NODE, HardNegatives
from peg_core.splits.matched_negatives import MatchedNegatives
from peg_core.splits.negative_sampling import NEGATIVES, NegativeSampler, sample_non_edges
from peg_core.splits.partners import Partners, known_partners
from peg_core.splits.reversed_links import REVERSED_SHARE
from peg_core.splits.stored_non_edges import StoredNonEdges
from tests.fixtures.overlapping_relations import OVERLAPPING, overlapping_graph

few = settings(max_examples=20, deadline=None)
shapes = st.sampled_from(OVERLAPPING)
seeds = st.integers(0, 10**6)
every_shape = pytest.mark.parametrize("shape", OVERLAPPING)


def ends_of(made):
    return np.array(sorted(made.links)).T


def free_pairs(made):
    """All pairs that might be links and are linked in neither direction, one by one."""
    relations = made.graph.relations
    first, second = relations.source_nodes, relations.target_nodes
    ordered = relations.target.directed or first != second
    return {
        (u, v)
        for u in range(first.start, first.stop)
        for v in range(second.start, second.stop)
        if u != v and (ordered or u < v) and not {(u, v), (v, u)} & made.links
    }


@few
@given(shape=shapes, seed=seeds, share=st.floats(0.05, 1))
def test_random_non_links_are_distinct_free_pairs(shape, seed, share):
    made = overlapping_graph(shape, seed)
    free = free_pairs(made)
    count = int(share * len(free))
    pairs = sample_non_edges(made.graph, count, rng=np.random.default_rng(seed))
    drawn = set(zip(*(end.tolist() for end in pairs), strict=True))
    assert len(drawn) == count
    assert drawn <= free
    with pytest.raises(GraphTooSmall, match=f"has only {len(free):,} pairs"):
        sample_non_edges(made.graph, len(free) + 1, rng=np.random.default_rng(seed))


@every_shape
def test_every_free_pair_is_as_likely(shape):
    made = overlapping_graph(shape, 1, num_nodes=16, num_links=20)
    free, rng = sorted(free_pairs(made)), np.random.default_rng(0)
    counts = dict.fromkeys(free, 0)
    draws, size = 2000, len(free) // 4
    for _ in range(draws):
        for pair in zip(
            *(e.tolist() for e in sample_non_edges(made.graph, size, rng=rng)), strict=True
        ):
            counts[pair] += 1
    expected = draws * size / len(free)
    assert np.abs(np.array(list(counts.values())) - expected).max() < 6 * np.sqrt(expected)


@every_shape
@settings(max_examples=5, deadline=None)
@given(seed=seeds)
def test_stored_non_links_are_those_drawn_in_memory(tmp_path_factory, shape, seed):
    made = overlapping_graph(shape, seed)
    count = len(free_pairs(made)) // 3
    expected = sample_non_edges(made.graph, count, rng=np.random.default_rng(seed))
    stored = StoredNonEdges(
        made.graph,
        count,
        rng=np.random.default_rng(seed),
        folder=tmp_path_factory.mktemp("non_edges"),
    )
    found = [np.concatenate(ends) for ends in zip(*stored.chunks(0, count), strict=True)]
    np.testing.assert_array_equal(found, expected)


@few
@given(shape=shapes, seed=seeds, kind=st.sampled_from(NEGATIVES))
def test_training_draws_no_impossible_pair(shape, seed, kind):
    made = overlapping_graph(shape, seed)
    sampler, rng = NegativeSampler(made.graph, kind), np.random.default_rng(seed)
    source, target = ends_of(made)
    for _ in range(3):
        pairs = sampler.draw(source, target, rng=rng)
        assert made.impossible(*pairs) == 0
        assert len(pairs[0]) == len(source)


@pytest.mark.parametrize("kind", NEGATIVES)
def test_a_quarter_of_what_directed_links_train_against_is_their_reverse(kind):
    made = overlapping_graph("directed", 0, num_nodes=400, num_links=3000)
    source, target = ends_of(made)
    one_way = np.array([(v, u) not in made.links for u, v in made.links]).mean()
    found = NegativeSampler(made.graph, kind).draw(source, target, rng=np.random.default_rng(0))
    own = (found[0] == target) & (found[1] == source)
    assert abs(own.mean() - REVERSED_SHARE * one_way) < 0.03
    assert made.impossible(*found) == 0


@every_shape
@pytest.mark.parametrize("kind", ["degree", "hard", "partner"])
def test_an_end_stays_where_one_is_replaced(shape, kind):
    made = overlapping_graph(shape, 4, num_nodes=60, num_links=100)
    source, target = ends_of(made)
    found = NegativeSampler(made.graph, kind).draw(source, target, rng=np.random.default_rng(0))
    kept = [(f == source) | (f == target) for f in found]
    assert (kept[0] | kept[1]).mean() > 0.9  # but where nothing was found
    if kind == "partner" and Partners.of(made.graph).ordered and shape != "directed":
        np.testing.assert_array_equal(found[0], source)


@few
@given(shape=shapes, seed=seeds, dense=st.booleans())
def test_matched_non_links_are_possible_and_keep_the_kind_of_each_end(shape, seed, dense):
    made = overlapping_graph(shape, seed, num_links=300 if dense else 60)
    train = made.graph.filter_entries(np.zeros(len(made.graph.indices), bool))  # all cold
    matched = MatchedNegatives(made.graph, None, train, seed)
    links = ends_of(made)
    try:
        ((source, target),) = matched.chunks(iter([links]))
    except GraphTooSmall:
        free = free_pairs(made)  # a link is left whose ends have no free partner
        taken = [link for link in made.links if not any({*link} & {*pair} for pair in free)]
        assert taken
        return
    assert made.impossible(source, target) == 0
    same = (source == links[0]) | (source == links[1]) | (target == links[0]) | (target == links[1])
    assert same.all()


@few
@given(shape=shapes, seed=seeds, features=st.booleans())
def test_hard_non_links_are_of_the_kind_that_the_anchor_is_linked_to(shape, seed, features):
    made = overlapping_graph(shape, seed)
    rng = np.random.default_rng(seed)
    sampler = HardNegatives(
        made.graph,
        made.graph,
        rng.normal(size=(made.graph.num_nodes, 3)) if features else None,
        count=8,
        seed=seed,
    )
    relations = made.graph.relations
    anchors = np.unique(ends_of(made))
    for anchor, row in zip(anchors.tolist(), sampler.sample(anchors), strict=True):
        found = row[row != NO_NODE]
        assert len(set(found.tolist())) == len(found)
        pair = np.full(len(found), anchor), found
        is_source = relations.source_nodes.start <= anchor < relations.source_nodes.stop
        assert made.impossible(*(pair if is_source else pair[::-1])) == 0
        if relations.has_reverses:
            assert made.impossible(*pair[::-1]) == 0
        else:
            end = relations.target_nodes if is_source else relations.source_nodes
            linked = {u if v == anchor else v for u, v in made.links if anchor in (u, v)}
            own = {anchor} & set(range(end.start, end.stop))
            assert len(found) == min(8, end.size - len(linked | own))


@every_shape
def test_known_partners_are_links_not_context(shape):
    made = overlapping_graph(shape, 2)
    directed = made.graph.relations.has_reverses
    for node in range(made.graph.num_nodes):
        successors = {v for u, v in made.links if u == node}
        predecessors = {u for u, v in made.links if v == node}
        found = set(known_partners(made.graph, node).tolist())
        assert found == (successors if directed else successors | predecessors)
        either = set(known_partners(made.graph, node, either_way=True).tolist())
        assert either == successors | predecessors
