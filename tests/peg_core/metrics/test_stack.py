"""Weights of a logit and of counts: those of largest likelihood, and finite whatever the pairs."""

import numpy as np
import pytest
from scipy.optimize import minimize

from peg_core.metrics.calibration import Calibration
from peg_core.metrics.stack import PENALTY, Stack, fit_stack


@pytest.fixture(scope="module")
def pairs():
    """Counts that know what the model, which reads them badly, does not."""
    rng = np.random.default_rng(0)
    structure = rng.exponential(size=(4_000, 6)).astype(np.float32)
    logits = rng.normal(0, 2, 4_000).astype(np.float32)
    true = 1.5 * logits - structure[:, 0] + 4 * structure[:, 2] - 3
    labels = (rng.random(4_000) < 1 / (1 + np.exp(-true))).astype(np.uint8)
    return logits, structure, labels


def test_the_fit_is_where_an_optimiser_ends(pairs):
    logits, structure, labels = pairs
    inputs = np.column_stack([logits, structure[:, :3]]).astype(np.float64)
    links, others = (labels == 1).sum(), (labels == 0).sum()
    wanted = np.where(labels == 1, (links + 1) / (links + 2), 1 / (others + 2))

    def loss(found):
        z = inputs @ found[:4] + found[4]
        entropy = np.log1p(np.exp(-np.abs(z))) + np.maximum(z, 0) - wanted * z
        return entropy.sum() + PENALTY / 2 * ((found[1:4] * inputs[:, 1:].std(axis=0)) ** 2).sum()

    best = minimize(loss, np.zeros(5), method="BFGS", options={"gtol": 1e-3}).x
    stack = fit_stack(logits, structure, labels)
    np.testing.assert_allclose([stack.logit, *stack.counts], best[:4], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(best[:4], [1.5, -1, 0, 4], atol=0.4)  # as the labels were drawn


def test_a_model_worse_than_chance_has_no_say(pairs):
    logits, structure, labels = pairs
    stack = fit_stack(-logits, structure, labels)
    assert stack.logit == 0
    assert stack.counts[2] > 1


@pytest.mark.parametrize("count", [0.0, 2.5])
def test_counts_that_are_all_the_same_get_no_weight(pairs, count):
    logits, structure, labels = pairs
    stack = fit_stack(logits, np.full_like(structure, count), labels)
    assert stack.counts == (0, 0, 0)
    assert stack.logit > 0.5


def test_links_apart_from_non_links_give_finite_weights():
    structure = np.repeat([[0.0], [5.0]], 3, axis=0) * np.ones(6)
    stack = fit_stack(structure[:, 0], structure, np.repeat([0, 1], 3))
    assert np.isfinite(stack.weights).all()
    assert stack.logit >= 0


def test_a_saved_stack_is_read_back(tmp_path):
    kept = Calibration(0.5, -1.0, 0.25, Stack(1.25, (-0.5, 0.0, 8.0)))
    kept.save(tmp_path)
    assert Calibration.open(tmp_path) == kept
    Calibration(0.5, -1.0, 0.25).save(tmp_path)
    assert "stack" not in (tmp_path / "calibration.json").read_text()
