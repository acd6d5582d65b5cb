"""From a model's logits to probabilities that can be taken at their word."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from peg_core.atomic_file import write_json
from peg_core.errors import GraphTooSmall
from peg_core.metrics.logistic_fit import NEWTON_STEPS, cross_entropy, sigmoid, wanted_chances
from peg_core.metrics.stack import Stack

FloatArray = npt.NDArray[np.floating[Any]]

FILE_NAME = "calibration.json"
# A calibration keeps the order of the pairs: a model worse than chance is flattened, not turned.
# Of logits with deviation 1; less where they lie further apart.
SMALLEST_SLOPE = 0.01


@dataclass(frozen=True)
class Calibration:
    """A line through the logits (Platt scaling).

    Args:
        slope, intercept: The calibrated logit is ``slope * logit + intercept``.
        prior: Share of links among the pairs that it was fitted to.
        stack: What the logits are made of; None: they are the model's own.
    """

    slope: float
    intercept: float
    prior: float
    stack: Stack | None = None

    def probabilities(
        self, logits: FloatArray, *, prior: float | None = None
    ) -> npt.NDArray[np.float32]:
        """Chance that each pair is a link, [num_pairs].

        Args:
            prior: Share of links where the pairs come from; none: as in the fit.
        """
        slope, intercept = self.line(prior=prior)
        return sigmoid(slope * logits.astype(np.float64) + intercept).astype(np.float32)

    def line(self, *, prior: float | None = None) -> tuple[float, float]:
        """Slope and intercept for pairs of which this share are links; none: as in the fit."""
        shift = 0.0 if prior is None else _logit(prior) - _logit(self.prior)
        return self.slope, self.intercept + shift

    def save(self, folder: Path) -> None:
        values = dataclasses.asdict(self)
        if self.stack is None:
            del values["stack"]  # as files were before there was one
        write_json(folder / FILE_NAME, values)

    @classmethod
    def open(cls, folder: Path) -> Self:
        values = json.loads((folder / FILE_NAME).read_text())
        stack = values.pop("stack", None)
        return cls(**values, stack=None if stack is None else Stack.of(stack))


def fit_logistic(logits: FloatArray, labels: npt.NDArray[Any]) -> Calibration:
    """Slope and intercept of largest likelihood, by Newton's method.

    Labels are pulled a little towards each other, by one pair of either kind, as Platt
    proposed: the fit stays finite where links and non-links do not overlap.

    Args:
        logits: [num_pairs].
        labels: [num_pairs] 1 for links, 0 for non-links; both occur.
    """
    links = int(np.sum(labels == 1))
    others = len(labels) - links
    if not links or not others:
        raise GraphTooSmall(
            f"calibration needs links and non-links, found {links:,} and {others:,}; "
            "raise `split.valid`, or give a larger graph"
        )
    wanted = wanted_chances(labels)
    x = logits.astype(np.float64)
    slope, intercept = _newton(x, wanted)
    smallest = SMALLEST_SLOPE / max(float(x.std()), 1.0)
    if not slope >= smallest:
        slope = smallest
        _, intercept = _newton(x, wanted, slope=slope)
    return Calibration(float(slope), float(intercept), links / len(labels))


def _newton(x: FloatArray, wanted: FloatArray, slope: float | None = None) -> tuple[float, float]:
    """Minimise the cross entropy; a given slope stays fixed."""
    centre = float(x.mean())
    scale = max(float(x.std()), 1e-12)
    free = slope is None
    columns = np.stack([(x - centre) / scale, np.ones(len(x))], axis=1)  # [num_pairs, 2]
    offset = np.zeros(len(x)) if slope is None else slope * x
    used = columns if free else columns[:, 1:]
    solution = np.zeros(used.shape[1])
    loss = cross_entropy(offset + used @ solution, wanted)
    for _ in range(NEWTON_STEPS):
        chance = sigmoid(offset + used @ solution)
        gradient = used.T @ (chance - wanted)
        hessian = (used * (chance * (1 - chance))[:, None]).T @ used
        step = np.linalg.solve(hessian + 1e-9 * np.eye(len(hessian)), gradient)
        size = 1.0
        while (better := cross_entropy(offset + used @ (solution - size * step), wanted)) > loss:
            size /= 2
            if size < 1e-8:
                break
        solution, gain, loss = solution - size * step, loss - better, better
        if gain < 1e-12 * max(loss, 1):
            break
    if slope is not None:
        return slope, float(solution[0])
    return float(solution[0] / scale), float(solution[1] - solution[0] * centre / scale)


def _logit(share: float) -> float:
    return float(np.log(share / (1 - share)))
