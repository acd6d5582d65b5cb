"""Cold pairs and degrees of held-out pairs, against sets and scipy."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp
from sklearn.metrics import roc_auc_score

from peg_core.graph.graph_store import GraphStore
from peg_core.splits.population import (
    auc_of_shares,
    cold_pairs,
    cold_shares,
    describe_cold,
    describe_population,
    subsets,
)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), edges=st.integers(5, 60), pieces=st.integers(1, 4))
def test_cold_pairs_and_medians_are_those_of_sets(to_store, seed, edges, pieces):
    nxg = nx.gnm_random_graph(40, edges, seed=seed)
    graph, rng = to_store(nxg), np.random.default_rng(seed)
    pairs, label = rng.integers(0, 40, size=(2, 50)), rng.integers(0, 2, 50).astype(np.uint8)
    cold = [not (nxg.degree(u) and nxg.degree(v)) for u, v in pairs.T.tolist()]
    np.testing.assert_array_equal(cold_pairs(graph, *pairs), cold)
    chunks = [
        [*np.array_split(pairs, pieces, axis=1)[n], np.array_split(label, pieces)[n]]
        for n in range(pieces)
    ]
    found = describe_population(graph, chunks)
    counts = [int(np.sum(np.array(cold) & (label == side))) for side in (1, 0)]
    assert [found["cold_links"], found["cold_non_links"]] == counts
    assert [found["links"], found["non_links"]] == [int(label.sum()), int((1 - label).sum())]
    test = [nxg.degree(node) + 1 for node in pairs[:, label == 1].ravel().tolist()]
    train = [nxg.degree(node) for edge in nxg.edges for node in edge]
    # degrees below 5 have a step of their own: there the distance is exact
    if max(test + train) < 5:
        assert found["degree_shift"] == pytest.approx(ks_2samp(test, train).statistic)
        assert found["median_test_degree"] == np.percentile(test, 50, method="inverted_cdf")


def test_links_drawn_at_random_have_the_degrees_of_the_others(to_store):
    """The newest links of a growing graph do not."""
    graph = to_store(nx.barabasi_albert_graph(3000, 3, seed=0))
    source, target = graph.edges()
    rows = np.repeat(np.arange(graph.num_nodes), graph.degrees)
    chosen = np.random.default_rng(0).random(len(source)) < 0.1
    newest = np.maximum(source, target) >= 2700
    shifts = []
    for held_out in (chosen, newest):
        keys = set(zip(source[held_out].tolist(), target[held_out].tolist(), strict=True))
        ends = zip(rows.tolist(), graph.indices.tolist(), strict=True)
        kept = np.array([(min(pair), max(pair)) not in keys for pair in ends])
        pairs = [source[held_out], target[held_out], np.ones(int(held_out.sum()), np.uint8)]
        shifts.append(describe_population(graph.filter_entries(kept), [pairs])["degree_shift"])
    assert shifts[0] < 0.1
    assert shifts[1] > 0.4


def population(links, cold_links, non_links, cold_non_links):
    return {
        "links": links,
        "cold_links": cold_links,
        "non_links": non_links,
        "cold_non_links": cold_non_links,
    }


def test_cold_pairs_are_told_of_and_ranked_apart_where_there_are_enough():
    assert cold_shares(population(1000, 9, 1000, 9)) == {}
    assert describe_cold(population(1000, 9, 1000, 9)) == ""
    assert subsets(population(1000, 9, 1000, 9)) == []
    assert cold_shares(population(1000, 9, 1000, 50)) == {
        "cold_links": 0.009,
        "cold_non_links": 0.05,
    }
    assert subsets(population(1000, 9, 1000, 50)) == ["warm", "cold"]
    assert subsets(population(1000, 0, 1000, 50)) == ["warm"]
    assert subsets(population(1000, 1000, 1000, 50)) == ["cold"]
    assert describe_cold(population(1000, 998, 1000, 180)).endswith(
        "99.8% of links, 18.0% of non-links, which alone makes an AUC of 0.909"
    )


@pytest.mark.parametrize(("links", "non_links"), [(0.4, 0.1), (0.1, 0.4), (0.2, 0.2), (1.0, 0.0)])
def test_the_auc_of_being_cold_is_that_of_scikit_learn(links, non_links):
    label = np.repeat([1, 0], 10)
    cold = np.concatenate([np.arange(10) < 10 * share for share in (links, non_links)])
    auc = roc_auc_score(label, cold)
    assert auc_of_shares(links, non_links) == pytest.approx(max(auc, 1 - auc))


def test_a_graph_without_held_out_links_has_not_moved():
    graph = GraphStore.from_edges([0], [1], num_nodes=2)
    none = [np.zeros(0, np.int64)] * 2 + [np.zeros(0, np.uint8)]
    assert describe_population(graph, [none])["degree_shift"] == 0
