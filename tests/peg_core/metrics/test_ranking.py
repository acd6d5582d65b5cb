import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import average_precision_score, roc_auc_score

from peg_core.errors import InputError
from peg_core.metrics.ranking import ranking_metrics, roc_auc

# few distinct values, so that ties are common
scores = hnp.arrays(np.float64, st.integers(1, 30), elements=st.integers(0, 8).map(float))


@given(scores, scores)
def test_auc_and_precision_equal_scikit_learn(positive, negative):
    labels = np.r_[np.ones(len(positive)), np.zeros(len(negative))]
    both = np.r_[positive, negative]
    found = ranking_metrics(positive, negative, hits=[])
    assert found["auc"] == roc_auc(positive, negative)
    assert found["auc"] == pytest.approx(roc_auc_score(labels, both))
    assert found["average_precision"] == pytest.approx(average_precision_score(labels, both))


@given(scores, scores, st.integers(1, 12))
def test_hits_follow_the_ogb_definition(positive, negative, k):
    if len(negative) < k:
        expected = 1.0
    else:
        kth = sorted(negative, reverse=True)[k - 1]
        expected = sum(p > kth for p in positive) / len(positive)
    assert ranking_metrics(positive, negative, hits=[k])[f"hits@{k}"] == pytest.approx(expected)


@given(scores, scores)
def test_reciprocal_rank_counts_the_better_and_half_of_the_equal(positive, negative):
    ranks = [1 + sum(n > p for n in negative) + sum(n == p for n in negative) / 2 for p in positive]
    expected = np.mean([1 / rank for rank in ranks])
    assert ranking_metrics(positive, negative, hits=[])["mrr"] == pytest.approx(expected)


def test_all_metrics_come_by_name():
    found = ranking_metrics(np.array([3.0, 2.0]), np.array([1.0, 0.0]), hits=[1, 2])
    assert found == {
        "auc": 1.0, "average_precision": 1.0, "mrr": 1.0, "hits@1": 1.0, "hits@2": 1.0
    }  # fmt: skip


def test_a_score_that_is_no_number_is_refused():
    with pytest.raises(InputError, match="1 of 2 scores are not a number"):
        ranking_metrics(np.array([0.5]), np.array([np.nan, 1.0]), hits=[])
