import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from peg_core.errors import InputError
from peg_core.metrics.ranking import metrics_of_groups, ranking_metrics
from peg_core.metrics.score_runs import ScoreRuns


@pytest.mark.parametrize("digits", [0, 1, 7])
def test_metrics_of_many_pieces_equal_scikit_learn(tmp_path, digits):
    rng = np.random.default_rng(8)
    runs = ScoreRuns(tmp_path, slice_scores=500)
    sides = ([], [])
    for size in (900, 0, 2500, 1):
        pieces = [
            rng.normal(mean, 2, count).round(digits).astype(np.float32)
            for mean, count in ((1, size), (0, 3 * size))
        ]
        runs.add(*pieces)
        for side, piece in zip(sides, pieces, strict=True):
            side.append(piece)
    positive, negative = (np.concatenate(side) for side in sides)
    labels = np.r_[np.ones(len(positive)), np.zeros(len(negative))]
    both = np.r_[positive, negative]
    found = metrics_of_groups(runs.groups(), hits=[100])
    assert runs.num_scores == len(both)
    assert found["auc"] == pytest.approx(roc_auc_score(labels, both), abs=1e-12)
    assert found["average_precision"] == pytest.approx(average_precision_score(labels, both))
    assert found == pytest.approx(ranking_metrics(positive, negative, hits=[100]), abs=1e-12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=1, max_size=40),
    st.integers(1, 9),
)
def test_pieces_and_slices_do_not_matter(tmp_path, rows, slice_scores):
    labels = np.array([label for label, _ in rows])
    scores = np.array([score for _, score in rows], dtype=np.float32)
    runs = ScoreRuns(tmp_path, slice_scores=slice_scores)
    for start in range(0, len(rows), 7):
        part = slice(start, start + 7)
        runs.add(scores[part][labels[part]], scores[part][~labels[part]])
    groups = list(runs.groups())
    counted = np.concatenate([np.stack([g.positive, g.negative]) for g in groups], axis=1)
    values = np.unique(scores)[::-1]
    expected = [[(scores[labels == side] == v).sum() for v in values] for side in (True, False)]
    np.testing.assert_array_equal(counted, expected)


def test_a_score_that_is_no_number_is_refused_before_it_is_written(tmp_path):
    with pytest.raises(InputError, match="1 of 1 scores"):
        ScoreRuns(tmp_path).add(np.array([np.nan]), np.zeros(2))
    assert list(tmp_path.iterdir()) == []
