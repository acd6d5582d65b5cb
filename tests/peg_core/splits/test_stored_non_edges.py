import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from peg_core.errors import GraphTooSmall
from peg_core.splits import stored_non_edges
from peg_core.splits.negative_sampling import sample_non_edges
from peg_core.splits.stored_non_edges import StoredNonEdges


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("scratch")


def joined(chunks):
    return [np.concatenate(ends).tolist() for ends in zip(*chunks, strict=True)]


@given(
    st.integers(0, 1000),
    st.sampled_from([0.05, 0.5, 0.9]),
    st.sampled_from([0.1, 0.3, 0.5, 1.0]),
    st.sampled_from([3, 50, 2**20]),
)
def test_they_are_those_that_are_drawn_in_memory(to_store, scratch, seed, density, share, size):
    """Whatever the pieces; up to half of the non-edges many are drawn more than once."""
    graph = to_store(nx.gnp_random_graph(25, density, seed=seed))
    count = max(1, int((25 * 24 // 2 - graph.num_edges) * share))
    before = stored_non_edges.CHUNK, stored_non_edges.MOST_COMPARED
    stored_non_edges.CHUNK = stored_non_edges.MOST_COMPARED = size
    try:
        rng = np.random.default_rng(seed)
        found = StoredNonEdges(graph, count, rng=rng, folder=scratch)
        first, second = joined(found.chunks(0, count // 2 + 1)), []
        if count > count // 2 + 1:
            second = joined(found.chunks(count // 2 + 1, count))
    finally:
        stored_non_edges.CHUNK, stored_non_edges.MOST_COMPARED = before
    expected = sample_non_edges(graph, count, rng=np.random.default_rng(seed))
    together = [a + b for a, b in zip(first, second or [[], []], strict=True)]
    assert together == [end.tolist() for end in expected]


def test_more_than_there_are_are_refused(to_store, tmp_path):
    rng = np.random.default_rng(0)
    with pytest.raises(GraphTooSmall, match=r"5 negative pairs were asked for, .* only 0"):
        StoredNonEdges(to_store(nx.complete_graph(5)), 5, rng=rng, folder=tmp_path)
