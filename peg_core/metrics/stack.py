"""A model's logit beside the counts that heuristics make of a pair: one weighted sum.

Heuristics need no training and are hard to beat at the very top, where a model that reads the same
counts may have weighed them by pairs further down. Weights that validation pairs give bring the
two together; pairs that were trained on would not do, because the model knows their answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from peg_core.metrics.logistic_fit import fit_weights, wanted_chances

FloatArray = npt.NDArray[np.floating[Any]]

# The first columns of what is known of the neighbourhoods of a pair, log(1 + x) of each.
STACKED = ("common_neighbours", "adamic_adar", "resource_allocation")
# Of half the squared weight of a count with deviation 1: far less than some hundred pairs say.
PENALTY = 0.1


@dataclass(frozen=True)
class Stack:
    """``logit * model's logit + counts . log(1 + counts of the pair)``.

    The counts say nearly the same, so a weight below 0 corrects what the model or another count
    makes of one of them. The weight of the logit never is.

    Args:
        logit: Weight of the model's logit.
        counts: A weight for each of ``STACKED``.
    """

    logit: float
    counts: tuple[float, ...]

    @classmethod
    def of(cls, values: dict[str, Any]) -> Self:
        """From what :func:`dataclasses.asdict` made, as JSON gives it back."""
        return cls(float(values["logit"]), tuple(map(float, values["counts"])))

    @property
    def weights(self) -> npt.NDArray[np.float32]:
        """That of the logit first, as a kernel reads them."""
        return np.array([self.logit, *self.counts], dtype=np.float32)


def fit_stack(logits: FloatArray, structure: FloatArray, labels: npt.NDArray[Any]) -> Stack:
    """Weights of largest likelihood, counts with a small penalty; the intercept is left out.

    Args:
        logits: [num_pairs] of the model.
        structure: [num_pairs, 6 or 15], of which the first columns are read.
        labels: [num_pairs] 1 for links, 0 for non-links; both occur.
    """
    counts = structure[:, : len(STACKED)].astype(np.float64)
    columns = [logits.astype(np.float64)[:, None], counts]
    found = _standardised_fit(np.concatenate(columns, axis=1), labels, free=1)
    if found[0] > 0:
        return Stack(found[0], tuple(found[1:]))
    # a model worse than chance has no say; its order is not turned
    return Stack(0.0, tuple(_standardised_fit(counts, labels, free=0)))


def _standardised_fit(
    inputs: FloatArray, labels: npt.NDArray[Any], *, free: int
) -> Sequence[float]:
    """Weights of the inputs; the first ``free`` have no penalty."""
    spread = inputs.std(axis=0)
    spread[spread == 0] = np.inf  # what is the same for all pairs gets no weight
    ones = np.ones((len(inputs), 1))
    columns = np.concatenate([(inputs - inputs.mean(axis=0)) / spread, ones], axis=1)
    penalties = np.full(columns.shape[1], PENALTY)
    penalties[:free] = penalties[-1] = 0.0
    weights = fit_weights(columns, wanted_chances(labels), penalties=penalties)
    return [float(weight) for weight in weights[:-1] / spread]
