"""What each input of a head adds to a logit, counted from a baseline.

Integrated gradients (https://arxiv.org/abs/1703.01365): ``(x - b) * mean gradient between b and
x``. What the inputs add is the logit of x less that of the baseline b. Of a linear head the
gradient is its weights. Of a head with one hidden layer of rectified units it changes only where a
unit starts or stops, so the mean is exact too. Of other heads it is taken at many points, and
what is missing in the sum, less than a thousandth as a rule, is spread in proportion.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from peg_core.explain.head_inputs import split_inputs
from peg_core.inference.folded_head import FoldedHead, fold_head
from peg_core.metrics.stack import Stack
from peg_core.models.heads import Head

Array = npt.NDArray[np.float64]

FEWEST_POINTS, MOST_POINTS = 256, 16_384
# What an input adds is known when four times as many points move it by no more.
TOLERANCE = 1e-3


@dataclass(frozen=True)
class Attribution:
    """What inputs add to logits.

    Args:
        added: [num_pairs, num_inputs].
        logits: Of the pairs, [num_pairs].
        baseline: The logit of the baseline.
    """

    added: Array
    logits: Array
    baseline: float

    def stacked(self, stack: Stack, counts: Array, baseline: Array, first: int) -> Attribution:
        """The same of the sum that a stack makes of the logit and the counts of a pair.

        Args:
            counts: Of the pairs, [num_pairs, num_counts].
            baseline: Those of the baseline, [num_counts].
            first: The column of ``added`` that is the first count.
        """
        weights = np.array(stack.counts)
        added = stack.logit * self.added
        added[:, first : first + len(weights)] += (counts - baseline) * weights
        logits = stack.logit * self.logits + counts @ weights
        return Attribution(added, logits, stack.logit * self.baseline + float(baseline @ weights))


def attribute(head: Head, inputs: Array, baseline: Array, *, num_encodings: int) -> Attribution:
    """What every input adds.

    Args:
        head: In evaluation mode.
        inputs: Of some pairs, [num_pairs, num_inputs].
        baseline: [num_inputs].
    """
    folded = fold_head(head, hidden=head.hidden, num_encodings=num_encodings)
    if folded is not None:
        return _exact(folded, inputs, baseline)
    double = copy.deepcopy(head).double().eval()
    rows = [_integrated(double, row, baseline, num_encodings) for row in inputs]
    logits = _logits(double, np.vstack([inputs, baseline]), num_encodings)
    added = np.stack(rows) if rows else np.zeros_like(inputs)
    return Attribution(added, logits[:-1], float(logits[-1]))


def _exact(head: FoldedHead, inputs: Array, baseline: Array) -> Attribution:
    """Of a linear head, or one hidden layer: the share of the way on which each unit is active."""
    inner, offset = head.inner.astype(np.float64), float(head.offset)
    if head.is_linear:
        weights = inner[:, 0]
        added = (inputs - baseline) * weights
        return Attribution(added, inputs @ weights + offset, float(baseline @ weights) + offset)
    outer = head.outer.astype(np.float64)
    units = inputs @ inner + head.bias  # [num_pairs, width]
    start = baseline @ inner + head.bias  # [width]
    active = _active_share(np.broadcast_to(start, units.shape), units)
    added = (inputs - baseline) * ((active * outer) @ inner.T)
    logits = np.maximum(units, 0) @ outer + offset
    return Attribution(added, logits, float(np.maximum(start, 0) @ outer) + offset)


def _active_share(start: Array, stop: Array) -> Array:
    """The share of the way from start to stop that lies above 0."""
    above = np.maximum(stop, 0) - np.maximum(start, 0)
    moved = stop - start
    share = np.divide(above, moved, out=np.zeros_like(moved), where=moved != 0)
    return np.where(moved == 0, (start > 0).astype(np.float64), share)


def _integrated(head: Head, row: Array, baseline: Array, num_encodings: int) -> Array:
    """Of one pair, with points added until nothing moves any more; [num_inputs]."""
    ends = _logits(head, np.stack([baseline, row]), num_encodings)
    before = np.full_like(row, np.inf)
    points = FEWEST_POINTS
    while True:
        shares = (np.arange(points) + 0.5) / points
        way = torch.from_numpy(baseline + shares[:, None] * (row - baseline)).requires_grad_()
        total = head.combine(*split_inputs(head, way, num_encodings)).sum()
        (gradient,) = torch.autograd.grad(total, way)
        added: Array = (row - baseline) * gradient.mean(0).numpy()
        missing = float(ends[1] - ends[0] - added.sum())
        moved = max(float(np.abs(added - before).max()), abs(missing))
        if moved <= TOLERANCE or points >= MOST_POINTS:
            sizes = np.abs(added)
            return added + missing * sizes / max(float(sizes.sum()), 1e-12)
        before = added
        points *= 4


@torch.no_grad()
def _logits(head: Head, inputs: Array, num_encodings: int) -> Array:
    found: Array = head.combine(
        *split_inputs(head, torch.from_numpy(inputs), num_encodings)
    ).numpy()
    return found
