"""The one metric by which methods are compared, and what a manifest tells of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from peg_core.metrics.direction import DIRECTION_ACCURACY


def headline_metric(protocol: str, *, top_k: int, linked: bool) -> str:
    """Name of the metric.

    Args:
        protocol: How links are ranked.
        top_k: First K of lists of partners.
        linked: Whether given non-links belong to links of their own.
    """
    if protocol == "recommend":
        return f"recall@{top_k}"
    return "mrr" if protocol == "heart" or (protocol == "given" and linked) else "auc"


def headline_counts(
    rows: list[dict[str, Any]], curves: dict[str, Any], metric: str
) -> dict[str, Any]:
    """The model's headline, and the same of the best heuristic.

    Args:
        rows: Of the first protocol, the model first.
        curves: Calibration by seed.
    """
    model, *others = rows
    counts = {f"test_{metric}": model[metric]}
    if "average_precision" in model:
        counts["average_precision"] = model["average_precision"]
    if DIRECTION_ACCURACY in model:
        counts[DIRECTION_ACCURACY] = model[DIRECTION_ACCURACY]
    if others:
        best = max(others, key=lambda row: row[metric])
        counts[f"{best['method']}_{metric}"] = best[metric]
    counts["calibration_error"] = float(np.mean([curve["error"] for curve in curves.values()]))
    return counts
