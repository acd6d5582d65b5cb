"""Rankings of all partners against sorting everything, and their metrics against scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from peg_core.graph.graph_store import GraphStore
from peg_core.inference import partner_ranking
from peg_core.inference.partner_ranking import PartnerRanking, popularity
from peg_core.metrics.recommendation import NOTHING, Relevant, list_metrics, node_metrics
from peg_core.splits.partners import Partners
from tests.fixtures.relational_graphs import SHAPES, listed_graph

USERS, ITEMS = 7, 12
PARTNERS = Partners(0, USERS, USERS, USERS + ITEMS)


def example(seed=3, ties=False):
    rng = np.random.default_rng(seed)
    likes = rng.random((USERS, ITEMS)) < 0.3
    source, target = np.nonzero(likes)
    graph = GraphStore.from_edges(source, USERS + target, num_nodes=USERS + ITEMS)
    scores = rng.integers(0, 4, likes.shape) if ties else rng.normal(size=likes.shape)
    return graph, likes, scores.astype(np.float32)


def rank(graph, scores):
    return PartnerRanking(
        PARTNERS, [graph], lambda nodes, a, b: scores[nodes][:, a - USERS : b - USERS]
    )


def sorted_lists(likes, scores, k):
    found = np.full((USERS, k), NOTHING)
    for user in range(USERS):
        free = [i for i in range(ITEMS) if not likes[user, i]]
        best = sorted(free, key=lambda i: (-scores[user, i], i))[:k]
        found[user, : len(best)] = np.array(best) + USERS
    return found


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("k", [3, 11])
@pytest.mark.parametrize("most_scores", [2**24, 5])
def test_lists_are_the_best_of_all_that_is_not_known(ties, k, most_scores, monkeypatch):
    monkeypatch.setattr(partner_ranking, "MOST_SCORES", most_scores)
    graph, likes, scores = example(ties=ties)
    found = rank(graph, scores).lists(np.arange(USERS), k)
    np.testing.assert_array_equal(found, sorted_lists(likes, scores, k))


def test_popularity_recommends_what_has_most_neighbours():
    graph, likes, _ = example()
    found = PartnerRanking.by_popularity(graph, [graph], PARTNERS).lists(np.arange(USERS), 4)
    popular = np.broadcast_to(likes.sum(axis=0), likes.shape)
    np.testing.assert_array_equal(found, sorted_lists(likes, popular, 4))


def test_a_node_is_not_its_own_partner():
    graph = GraphStore.from_edges(np.array([0]), np.array([1]), num_nodes=4)
    everyone = Partners.of(graph)
    ranking = PartnerRanking(everyone, [graph], lambda n, a, b: np.ones((len(n), b - a)))
    np.testing.assert_array_equal(ranking.lists(np.array([0, 2]), 3), [[2, 3, NOTHING], [0, 1, 3]])


def test_metrics_of_nodes_are_those_of_scikit_learn_and_of_counting():
    rng = np.random.default_rng(0)
    graph, likes, scores = example()
    held_out = (rng.random(likes.shape) < 0.4) & ~likes
    held_out[:, 0] |= ~likes[:, 0]
    users, items = np.nonzero(held_out)
    relevant = Relevant.of(np.r_[users, users[:1]], np.r_[items, items[:1]] + USERS)
    lists = rank(graph, scores).lists(relevant.nodes, 5)
    found = node_metrics(lists, relevant, top_k=[2, 5])
    free = np.where(likes, scores.min() - 1, scores)
    for k in (2, 5):
        for row, user in enumerate(relevant.nodes):
            hits = {item - USERS for item in lists[row, :k]} & set(np.flatnonzero(held_out[user]))
            assert found[f"recall@{k}"][row] == len(hits) / held_out[user].sum()
            assert found[f"precision@{k}"][row] == len(hits) / k
            assert found[f"hit_rate@{k}"][row] == bool(hits)
            expected = ndcg_score([held_out[user]], [free[user]], k=k)
            assert found[f"ndcg@{k}"][row] == pytest.approx(expected)


def test_some_nodes_keep_their_own_links():
    relevant = Relevant.of(np.array([5, 1, 1, 3]), np.array([9, 8, 7, 7]))
    some = relevant.some(np.array([0, 2]))
    assert some.nodes.tolist() == [1, 5]
    assert list(zip(some.nodes[some.row], some.partner, strict=True)) == [(1, 7), (1, 8), (5, 9)]


def test_coverage_and_popularity_count_what_is_recommended():
    lists = np.array([[2, 3, NOTHING], [2, 4, 5]])
    degrees = np.array([0, 0, 6, 1, 2, 3])
    found = list_metrics(lists, degrees, partners=8, top_k=[1, 3])
    assert found == {
        "coverage@1": 1 / 8,
        "popularity@1": 6.0,
        "coverage@3": 4 / 8,
        "popularity@3": pytest.approx(18 / 5),
    }


def test_above_the_limit_a_sample_of_nodes_is_ranked(monkeypatch):
    monkeypatch.setattr(partner_ranking, "FEWEST_NODES", 2)
    ranking = rank(*example()[::2])
    assert ranking.sample(5, seed=0).tolist() == [0, 1, 2, 3, 4]
    some = ranking.sample(50, seed=0, most_pairs=10 * ITEMS)
    assert len(set(some.tolist())) == 10
    assert some.tolist() != ranking.sample(50, seed=1, most_pairs=10 * ITEMS).tolist()


@pytest.mark.parametrize("shape", SHAPES)
def test_lists_leave_out_links_of_the_predicted_relation_and_direction_alone(shape):
    listed = listed_graph(shape, num_nodes=30, num_links=60, seed=2)
    graph, ends = listed.graph, listed.links[listed.graph.relations.predicted]
    links = np.zeros((30, 30), dtype=bool)
    links[tuple(ends)] = True
    if not graph.is_directed:
        links |= links.T
    partners = Partners.of(graph)
    values = np.random.default_rng(1).normal(size=(30, 30)).astype(np.float32)
    ranking = PartnerRanking(partners, [graph], lambda nodes, a, b: values[nodes, a:b])
    nodes = np.arange(partners.first_anchor, partners.last_anchor)
    for node, found in zip(nodes, ranking.lists(nodes, 30), strict=True):
        free = [o for o in partners.nodes() if o != node and not links[node, o]]
        best = sorted(free, key=lambda other: -values[node, other])
        assert found[found != NOTHING].tolist() == best
    np.testing.assert_array_equal(popularity(graph), links.sum(axis=0))
    asked = partners.anchored(*ends)
    pairs = links.T if graph.is_directed else links
    assert (
        len(asked[0]) == (2 if partners.one_kind and not graph.is_directed else 1) * ends.shape[1]
    )
    assert pairs[asked[1], asked[0]].all()
