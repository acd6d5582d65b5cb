from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score, roc_curve

from peg_core.errors import ArtifactMismatch
from pipeline.report.data import MAX_ROC_POINTS, finite_pairs, roc_points, thin_roc
from tests.fixtures.scored_pairs import scored_pairs


@pytest.mark.parametrize("decimals", [1, 2, 16])
def test_roc_points_are_those_of_scikit_learn(decimals):
    labels, scores = scored_pairs(500, decimals=decimals)
    false_rates, true_rates, _ = roc_curve(labels, scores, drop_intermediate=False)
    found = roc_points(labels, scores)
    np.testing.assert_allclose(found[0], false_rates)
    np.testing.assert_allclose(found[1], true_rates)


def test_thinned_roc_keeps_the_ends_and_the_area():
    labels, scores = scored_pairs(200_000)
    false_rates, true_rates = thin_roc(*roc_points(labels, scores))
    assert len(false_rates) <= MAX_ROC_POINTS
    assert (false_rates[0], true_rates[0]) == (0, 0)
    assert (false_rates[-1], true_rates[-1]) == (1, 1)
    area = np.trapezoid(true_rates, false_rates)
    assert area == pytest.approx(roc_auc_score(labels, scores), abs=1e-4)


def test_short_roc_is_not_thinned():
    rates = np.linspace(0, 1, 10)
    assert thin_roc(rates, rates)[0] is rates


def test_labels_and_scores_of_different_lengths_are_refused():
    with pytest.raises(ArtifactMismatch, match=r"test labels and test scores .* found \(2,\)"):
        finite_pairs(np.ones(3), np.ones(2))
