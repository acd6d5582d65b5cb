"""How well scores put links above non-links."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.metrics.tie_groups import TieGroups

FloatArray = npt.NDArray[np.floating[Any]]


class RankingSums:
    """Metrics of scores that come in pieces, best first, and for many weightings at once.

    Every row is a weighting of the pairs: one row of counts for the metrics themselves,
    a row per repeat for a bootstrap. Only sums are kept, so memory does not grow.

    Args:
        hits: The K of Hits@K.
        rows: Weightings.
    """

    def __init__(self, hits: Sequence[int], rows: int = 1) -> None:
        self._hits = list(hits)
        self._positive = np.zeros(rows)  # seen so far, [rows]
        self._negative = np.zeros(rows)
        self._misplaced = np.zeros(rows)  # pairs of a link and a non-link not below it
        self._precision = np.zeros(rows)
        self._reciprocal = np.zeros(rows)
        self._above = np.zeros((len(self._hits), rows))

    def add(self, positive: npt.NDArray[Any], negative: npt.NDArray[Any]) -> None:
        """Take the next groups: weights of their links and non-links, [rows, num_groups]."""
        if not positive.shape[1]:
            return
        links_after = self._positive[:, None] + np.cumsum(positive, axis=1)
        others_after = self._negative[:, None] + np.cumsum(negative, axis=1)
        others_middle = others_after - negative / 2
        self._misplaced += (positive * others_middle).sum(axis=1)
        seen = np.maximum(links_after + others_after, 1)
        self._precision += (positive * links_after / seen).sum(axis=1)
        self._reciprocal += (positive / (1 + others_middle)).sum(axis=1)
        for above, k in zip(self._above, self._hits, strict=True):
            above += (positive * (others_after < k)).sum(axis=1)
        self._positive, self._negative = links_after[:, -1], others_after[:, -1]

    def metrics(self) -> dict[str, npt.NDArray[np.float64]]:
        """Every metric by name, [rows]; not a number for a row without links or non-links."""
        with np.errstate(invalid="ignore", divide="ignore"):
            links = self._positive
            found = {
                "auc": 1 - self._misplaced / (links * self._negative),
                "average_precision": self._precision / links,
                "mrr": self._reciprocal / links,
            }
            for above, k in zip(self._above, self._hits, strict=True):
                found[f"hits@{k}"] = above / links
        return found


def metrics_of_groups(groups: Iterable[TieGroups], *, hits: Sequence[int]) -> dict[str, float]:
    """Exact metrics of tie groups that follow each other."""
    sums = RankingSums(hits)
    for group in groups:
        sums.add(group.positive[None], group.negative[None])
    return {name: float(value[0]) for name, value in sums.metrics().items()}


def ranking_metrics(
    positive: FloatArray, negative: FloatArray, *, hits: Sequence[int]
) -> dict[str, float]:
    """ROC AUC, average precision, MRR and Hits@K by name.

    - ``auc``: chance that a link scores above a non-link, ties counting half.
    - ``average_precision``: area under precision over recall, as a step function.
    - ``mrr``: mean of 1 / rank of each link among all non-links, ties at their middle rank.
    - ``hits@K``: share of links above the K-th best non-link, 1 with fewer than K (OGB).

    Args:
        positive: [num_links] scores.
        negative: [num_non_links] scores.
    """
    return metrics_of_groups([TieGroups.of(positive, negative)], hits=hits)


def roc_auc(positive: FloatArray, negative: FloatArray) -> float:
    """Chance that a link scores above a non-link, ties counting half."""
    return ranking_metrics(positive, negative, hits=())["auc"]
