"""How far a distribution of scores has moved."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

GROUPS = 10
# A group that is empty on one side counts as half a score there.
EMPTY = 0.5


def population_stability_index(
    expected: npt.ArrayLike, found: npt.ArrayLike, *, groups: int = GROUPS
) -> float:
    """``sum (q - p) ln(q / p)`` over groups of about equal share of the expected scores.

    Below 0.1 the distributions are alike, above 0.25 they differ.

    Args:
        expected: Histogram of the scores before, [num_bins].
        found: Histogram of the scores now, the same bins, [num_bins].
        groups: Neighbouring bins are joined into at most this many.

    Returns:
        The index; not a number where one of the histograms is empty.
    """
    before, now = (np.asarray(counts, dtype=np.float64) for counts in (expected, found))
    if before.shape != now.shape:
        raise ValueError(f"histograms have {before.shape} and {now.shape} bins, needed are equal")
    if not before.sum() or not now.sum():
        return float("nan")
    firsts = _group_starts(before, groups)
    sums = np.add.reduceat([before, now], firsts, axis=1)  # [2, num_groups]
    sums = sums[:, sums.any(axis=0)]
    p, q = np.maximum(sums, EMPTY) / sums.sum(axis=1, keepdims=True)
    return float(np.sum((q - p) * np.log(q / p)))


def _group_starts(counts: npt.NDArray[np.float64], groups: int) -> npt.NDArray[np.int64]:
    """The bins at which groups begin: each holds at least its share, the last may hold less."""
    below = np.concatenate([[0.0], np.cumsum(counts)[:-1]]) / counts.sum()
    number = np.floor(below * groups + 1e-9)
    return np.flatnonzero(np.concatenate([[True], np.diff(number) > 0]))
