"""Logistic regression of a few columns, by Newton's method."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.floating[Any]]

NEWTON_STEPS = 50
SMALLEST_STEP = 1e-8
SMALLEST_GAIN = 1e-12


def wanted_chances(labels: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Labels pulled a little towards each other, by one pair of either kind, as Platt proposed.

    A fit stays finite where links and non-links do not overlap.
    """
    links = int(np.sum(labels == 1))
    others = len(labels) - links
    return np.where(labels == 1, (links + 1) / (links + 2), 1 / (others + 2))


def cross_entropy(logits: FloatArray, wanted: FloatArray) -> float:
    """Summed over the pairs."""
    return float(np.sum(np.logaddexp(0, logits) - wanted * logits))


def sigmoid(x: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The logistic function."""
    return 1 / (1 + np.exp(-np.clip(x, -700, 700)))


def fit_weights(
    columns: FloatArray, wanted: FloatArray, *, penalties: FloatArray
) -> npt.NDArray[np.float64]:
    """Weights of least cross entropy and ``penalties . weights^2 / 2``, [num_columns].

    Args:
        columns: [num_pairs, num_columns], of about one scale; a constant one is the intercept.
        wanted: [num_pairs] chances.
        penalties: [num_columns].
    """

    def loss_at(weights: FloatArray) -> float:
        return cross_entropy(columns @ weights, wanted) + float(penalties @ weights**2) / 2

    weights = np.zeros(columns.shape[1])
    loss = loss_at(weights)
    for _ in range(NEWTON_STEPS):
        chance = sigmoid(columns @ weights)
        gradient = columns.T @ (chance - wanted) + penalties * weights
        hessian = (columns * (chance * (1 - chance))[:, None]).T @ columns + np.diag(penalties)
        step = np.linalg.solve(hessian + 1e-9 * np.eye(len(hessian)), gradient)
        size = 1.0
        while (better := loss_at(weights - size * step)) > loss:
            size /= 2
            if size < SMALLEST_STEP:
                return weights
        weights, gain, loss = weights - size * step, loss - better, better
        if gain < SMALLEST_GAIN * max(loss, 1):
            break
    return weights
