import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression

from peg_core.errors import GraphTooSmall
from peg_core.metrics.calibration import SMALLEST_SLOPE, Calibration, fit_logistic
from peg_core.metrics.reliability import (
    expected_calibration_error,
    reliability_curve,
    reliability_sums,
)


@pytest.fixture(scope="module")
def overconfident():
    """Logits three times too far out and moved."""
    rng = np.random.default_rng(0)
    true = rng.normal(0, 1.5, 20_000)
    labels = (rng.random(20_000) < 1 / (1 + np.exp(-true))).astype(np.uint8)
    return (3 * true + 2).astype(np.float32), labels


def test_the_fit_equals_logistic_regression(overconfident):
    logits, labels = overconfident
    peer = LogisticRegression(C=np.inf, tol=1e-10).fit(logits[:, None], labels)
    found = fit_logistic(logits, labels)
    assert found.slope == pytest.approx(peer.coef_[0, 0], rel=1e-3)
    assert found.intercept == pytest.approx(peer.intercept_[0], abs=2e-3)
    assert found.prior == labels.mean()


def test_calibrated_probabilities_come_true(overconfident):
    logits, labels = overconfident
    before = reliability_sums(Calibration(1, 0, 0.5).probabilities(logits), labels)
    after = reliability_sums(fit_logistic(logits, labels).probabilities(logits), labels)
    assert expected_calibration_error(before) > 0.1
    assert expected_calibration_error(after) < 0.02


def test_a_prior_moves_the_mean_probability_there(overconfident):
    logits, labels = overconfident
    calibration = fit_logistic(logits, labels)
    rare = calibration.probabilities(logits, prior=0.01)
    odds = rare / (1 - rare) / (0.01 / 0.99)
    plain = calibration.probabilities(logits).astype(np.float64)
    share = calibration.prior / (1 - calibration.prior)
    np.testing.assert_allclose(odds, plain / (1 - plain) / share, rtol=2e-3)


@pytest.mark.parametrize("logits", [[-5, -4, 4, 5], [1e4, 1e4, 3e4, 3e4]])
def test_links_apart_from_non_links_give_a_finite_fit(logits):
    found = fit_logistic(np.array(logits, dtype=np.float32), np.array([0, 0, 1, 1]))
    assert np.isfinite([found.slope, found.intercept]).all()
    low, *_, high = found.probabilities(np.array(logits, dtype=np.float32))
    assert 0 < low < 0.5 < high < 1


def test_a_model_worse_than_chance_keeps_its_order(overconfident):
    logits, labels = overconfident
    found = fit_logistic(-logits, labels)
    assert 0 < found.slope <= SMALLEST_SLOPE
    mean = found.probabilities(-logits).mean()
    assert mean == pytest.approx(labels.mean(), abs=1e-3)


def test_one_kind_of_pair_is_not_enough():
    with pytest.raises(GraphTooSmall, match="found 2 and 0"):
        fit_logistic(np.ones(2), np.ones(2))


def test_a_saved_calibration_is_read_back(tmp_path):
    Calibration(0.5, -1.0, 0.25).save(tmp_path)
    assert Calibration.open(tmp_path) == Calibration(0.5, -1.0, 0.25)


def test_the_curve_equals_scikit_learn(overconfident):
    logits, labels = overconfident
    chance = fit_logistic(logits, labels).probabilities(logits)
    links, mean = calibration_curve(labels, chance, n_bins=20)
    parts = [slice(0, 7_000), slice(7_000, None)]
    sums = sum(reliability_sums(chance[part], labels[part]) for part in parts)
    curve = reliability_curve(sums)
    np.testing.assert_allclose([row["links"] for row in curve], links)
    np.testing.assert_allclose([row["probability"] for row in curve], mean)
