"""Users and items: laws of the lists drawn, and what shapes them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from peg_core.errors import ConfigError
from peg_core.generators.taste_graph import TasteGraph

GRAPH = TasteGraph(users=600, items=400, edges=9000, tastes=10)


@settings(max_examples=25, deadline=None)
@given(
    users=st.integers(20, 200),
    items=st.integers(20, 200),
    tastes=st.integers(1, 10),
    skew=st.floats(0, 1.5),
    seed=st.integers(0, 99),
)
def test_pairs_are_distinct_and_ids_of_both_kinds_count_from_zero(users, items, tastes, skew, seed):
    graph = TasteGraph(users, items, users * items // 20, tastes, 0.5, skew)
    user, item = graph.likes(seed=seed)
    assert len(user) == len(item) == graph.edges == len(set(zip(user, item, strict=True)))
    assert user.min() >= 0
    assert user.max() < users
    assert item.min() >= 0
    assert item.max() < items
    assert np.intersect1d(user, item).size > 0


@pytest.mark.parametrize("seed", [0, 5])
def test_most_pairs_are_of_one_taste_and_plays_are_higher_there(seed):
    likes = GRAPH.likes(seed=seed)
    users, items = GRAPH.user_tastes(seed=seed), GRAPH.item_tastes(seed=seed)
    assert set(np.bincount(users)) == {60}
    assert set(np.bincount(items)) == {40}
    own = users[likes.source] == items[likes.target]
    assert 0.65 < own.mean() < 0.82  # 0.8 + 0.2 / 10 of the draws, fewer of the distinct pairs
    plays = GRAPH.plays(likes, seed=seed)
    assert plays.min() >= 1
    assert np.median(plays[own]) > 2 * np.median(plays[~own])
    assert plays.mean() > 1.5 * np.median(plays)  # a long tail


def test_popularity_follows_the_skew():
    def share_of_the_top_tenth(skew):
        _, item = replace(GRAPH, popularity_skew=skew).likes(seed=1)
        counts = np.sort(np.bincount(item, minlength=GRAPH.items))[::-1]
        return counts[: GRAPH.items // 10].sum() / counts.sum()

    shares = [share_of_the_top_tenth(skew) for skew in (0.0, 0.8, 1.6)]
    assert shares[0] < 0.16
    assert shares[1] > 0.25
    assert shares[2] > shares[1] + 0.1


def test_equal_numbers_are_unrelated_nodes():
    users, items = GRAPH.user_tastes(seed=2), GRAPH.item_tastes(seed=2)
    both = scipy.stats.contingency.crosstab(users[:400], items).count
    assert scipy.stats.chi2_contingency(both).pvalue > 1e-3


def test_friends_are_two_users_each_pair_once_mostly_of_one_taste():
    first, second = GRAPH.friendships(rows=2000, seed=3)
    assert len({frozenset(pair) for pair in zip(first, second, strict=True)}) == 2000
    assert not np.any(first == second)
    assert max(first.max(), second.max()) < GRAPH.users
    tastes = GRAPH.user_tastes(seed=3)
    assert (tastes[first] == tastes[second]).mean() > 0.7
    assert 0.4 < (first < second).mean() < 0.6


def test_all_candidates_are_all_pairs():
    graph = TasteGraph(users=12, items=7, edges=5, tastes=2)
    user, item = graph.candidates(rows=84, seed=0)
    assert set(zip(user.tolist(), item.tolist(), strict=True)) == {
        (u, i) for u in range(12) for i in range(7)
    }


def test_a_seed_decides_everything():
    def lists(seed):
        likes = GRAPH.likes(seed=seed)
        return np.concatenate(
            [*likes, GRAPH.plays(likes, seed=seed), *GRAPH.friendships(rows=50, seed=seed)]
        )

    np.testing.assert_array_equal(lists(4), lists(4))
    assert not np.array_equal(lists(4), lists(5))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"users": 1}, "1 users were asked for, between 2 and"),
        ({"items": 0}, "0 items were asked for, between 2 and"),
        ({"tastes": 201}, "201 tastes were asked for, between 1 and 200"),
        ({"inside_share": 1.5}, "`inside_share` is 1.5"),
        ({"popularity_skew": 3}, "`popularity_skew` is 3"),
        ({"edges": 0}, "0 edges were asked for, between 1 and 24,000"),
        ({"edges": 24_001}, "24,001 edges were asked for, between 1 and 24,000"),
    ],
)
def test_wrong_parameters_are_refused(changes, message):
    with pytest.raises(ConfigError, match=message):
        replace(GRAPH, **changes).check()


def test_more_rows_than_pairs_are_refused():
    with pytest.raises(ConfigError, match=r"240,001 candidates .* form 1 to 240,000 pairs"):
        GRAPH.candidates(rows=240_001, seed=0)
    with pytest.raises(ConfigError, match="friendships were asked for, between 1 and 17,970"):
        GRAPH.friendships(rows=17_971, seed=0)
    crowded = TasteGraph(users=100, items=60, edges=600, tastes=10, inside_share=1.0)
    with pytest.raises(ConfigError, match=r"600 edges were asked for, \d+ different ones"):
        crowded.likes(seed=0)
