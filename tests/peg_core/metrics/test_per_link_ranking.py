import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from peg_core.metrics.per_link_ranking import LinkRanks, link_ranks, per_link_metrics


def ogb_mrr(positive, negative):
    """OGB's evaluator for `eval_metric: mrr`, said again with numpy."""
    optimistic = (negative > positive.reshape(-1, 1)).sum(axis=1)
    pessimistic = (negative >= positive.reshape(-1, 1)).sum(axis=1)
    ranking = 0.5 * (optimistic + pessimistic) + 1
    return {
        "mrr": (1.0 / ranking).mean(),
        **{f"hits@{k}": (ranking <= k).astype(float).mean() for k in (1, 3, 10)},
    }


@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 12), st.integers(2, 15)),
        elements=st.integers(0, 5).map(float),
    )
)
def test_metrics_follow_the_ogb_definition(scores):
    positive, negative = scores[:, 0], scores[:, 1:]
    found = per_link_metrics(positive, negative, hits=[1, 3, 10])
    assert found == pytest.approx(ogb_mrr(positive, negative))


def test_places_without_a_non_link_do_not_count():
    negative = np.array([[2.0, np.nan, np.nan], [0.0, 3.0, 4.0]])
    np.testing.assert_array_equal(link_ranks(np.array([1.0, 1.0]), negative), [2, 3])


@given(data=st.data(), num_links=st.integers(1, 6), count=st.integers(1, 40))
def test_lists_of_any_length_in_any_pieces_rank_as_rows_do(data, num_links, count):
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    positive, negative = rng.integers(0, 4, num_links), rng.integers(0, 4, count)
    link = rng.integers(0, num_links, count)
    cut = data.draw(st.integers(0, count))
    pieces = [(negative[:cut], link[:cut]), (negative[cut:], link[cut:])]
    ranks = LinkRanks.of_lists(positive.astype(float), pieces)
    rows = np.full((num_links, count), np.nan)
    rows[link, np.arange(count)] = negative
    np.testing.assert_array_equal(ranks.mean, link_ranks(positive.astype(float), rows))
    for number in range(num_links):
        own = negative[link == number]
        assert ranks.optimistic[number] == 1 + (own > positive[number]).sum()
        assert ranks.pessimistic[number] == 1 + (own >= positive[number]).sum()
