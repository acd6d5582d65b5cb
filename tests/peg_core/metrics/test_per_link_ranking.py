import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from peg_core.metrics.per_link_ranking import link_ranks, per_link_metrics


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
