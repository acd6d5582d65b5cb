"""How well scores put links above non-links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.floating[Any]]


def roc_auc(positive: FloatArray, negative: FloatArray) -> float:
    """Chance that a link scores above a non-link, ties counting half."""
    order = np.sort(negative)
    below = np.searchsorted(order, positive, side="left")
    not_above = np.searchsorted(order, positive, side="right")
    return float((below + not_above).sum() / (2 * len(positive) * len(negative)))


def average_precision(positive: FloatArray, negative: FloatArray) -> float:
    """Area under precision over recall, as a step function (no interpolation)."""
    scores = np.concatenate([positive, negative])
    labels = np.concatenate([np.ones(len(positive)), np.zeros(len(negative))])
    order = np.argsort(-scores, kind="stable")
    scores, labels = scores[order], labels[order]
    last_of_tie = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1)
    true_positives = np.cumsum(labels)[last_of_tie]
    precision = true_positives / (last_of_tie + 1)
    recall = true_positives / len(positive)
    return float(np.sum(np.diff(recall, prepend=0) * precision))


def hits_at(positive: FloatArray, negative: FloatArray, k: int) -> float:
    """Share of links that score above the k-th best non-link (OGB's definition)."""
    if len(negative) < k:
        return 1.0
    threshold = np.partition(negative, -k)[-k]
    return float(np.mean(positive > threshold))


def mean_reciprocal_rank(positive: FloatArray, negative: FloatArray) -> float:
    """Mean of 1 / rank of each link among all non-links, ties at their middle rank."""
    order = np.sort(negative)
    above = len(negative) - np.searchsorted(order, positive, side="right")
    not_below = len(negative) - np.searchsorted(order, positive, side="left")
    return float(np.mean(1 / (1 + (above + not_below) / 2)))


def ranking_metrics(
    positive: FloatArray, negative: FloatArray, *, hits: Sequence[int]
) -> dict[str, float]:
    """All of the above, by name."""
    return {
        "auc": roc_auc(positive, negative),
        "average_precision": average_precision(positive, negative),
        "mrr": mean_reciprocal_rank(positive, negative),
        **{f"hits@{k}": hits_at(positive, negative, k) for k in hits},
    }
