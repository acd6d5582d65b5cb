"""What a report is made of: plain values, gathered by whoever ran the pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peg_core.errors import ArtifactMismatch

Array = NDArray[Any]

MAX_ROC_POINTS = 1000
# Suffixes of the columns that belong to a metric.
SUFFIXES = ("_low", "_high", "_std")


@dataclass(frozen=True)
class StageRow:
    """One stage of the run.

    Args:
        name: Name of the stage.
        fingerprint: Key of its artifact.
        action: What happened, for example ``run`` or ``reuse``.
        seconds: Wall time.
        counts: What the stage produced; ``nodes`` and ``edges`` also reach the summary.
    """

    name: str
    fingerprint: str
    action: str
    seconds: float
    counts: dict[str, int | float | str]


@dataclass(frozen=True)
class TopPair:
    """A candidate that scores high and is no link yet.

    Args:
        source, target: Ids of its ends.
        score: Its score.
        common_neighbours: Of both ends.
        degrees: Of either end.
    """

    source: str
    target: str
    score: float
    common_neighbours: int
    degrees: Sequence[int]


@dataclass(frozen=True)
class NodeMap:
    """Nodes in the plane.

    Args:
        points: [num_points, 2]
        groups: What each is coloured by, [num_points].
        grouped_by: What the groups are: kind, class or component.
        links: The best pairs as rows of ``points``, in the order of `top`.  # [num_pairs, 2]
        num_nodes: Of the graph; the points may be a sample.
    """

    points: Array
    groups: list[str]
    grouped_by: str
    links: Array
    num_nodes: int


@dataclass(frozen=True)
class DegreeClass:
    """Links whose ends have similarly many edges.

    Args:
        degrees: The smaller degree of the ends, such as ``3–4``.
        links: Number of test links.
        aucs: Of the model and, where there is one, of the best heuristic.
    """

    degrees: str
    links: int
    aucs: list[float]


@dataclass(frozen=True)
class ReportData:
    """Everything that is shown.

    Args:
        name: Name of the pipeline.
        created: ISO time of the run.
        config_yaml: The configuration with all defaults filled in.
        stages: The stages in the order they ran.
        metrics: By protocol a row per method, the model first: ``method``, then a value per
            metric, and beside it ``<metric>_low`` and ``<metric>_high``, the ends of its
            interval, and ``<metric>_std`` when several seeds were trained.
        epochs: A row per seed and epoch: ``seed``, ``epoch``, ``loss``, ``valid_auc``,
            and ``valid_<metric>`` where another metric chose the epoch.
        test_labels: 1 for links, 0 for non-links.  # [num_pairs]
        test_scores: Scores of the test pairs, in [0, 1].  # [num_pairs]
        calibration: A row per bin of scores: ``probability``, the mean score, ``links``, the
            share of links, and ``pairs``.
        score_histogram: Counts and bin edges of all candidate scores, ``[num_bins]`` and
            ``[num_bins + 1]``; none when nothing was scored.
        eigenvalues: Eigenvalues by encoding; empty when no encoding has any.
        outputs: Paths by label.
        warnings: What the reader should know before trusting the numbers.
        note: A sentence below the metrics; empty: nothing to tell.
        top: The best new pairs.
        node_map: The nodes in the plane; none: not drawn.
        by_degree: The quality for links of few and of many neighbours.
        rival: The heuristic of ``by_degree``.
    """

    name: str
    created: str
    config_yaml: str
    stages: list[StageRow]
    metrics: dict[str, list[dict[str, float | str]]]
    epochs: list[dict[str, float]]
    test_labels: np.ndarray
    test_scores: np.ndarray
    calibration: list[dict[str, float]]
    score_histogram: tuple[np.ndarray, np.ndarray] | None
    eigenvalues: dict[str, list[float]]
    outputs: dict[str, str]
    warnings: list[str]
    note: str = ""
    top: list[TopPair] = field(default_factory=list)
    node_map: NodeMap | None = None
    by_degree: list[DegreeClass] = field(default_factory=list)
    rival: str | None = None


def finite_pairs(labels: Array, scores: Array) -> tuple[Array, Array, str]:
    """Labels as booleans and finite scores, with a note on pairs left out."""
    labels, scores = np.asarray(labels), np.asarray(scores, dtype=np.float64)
    if labels.shape != scores.shape:
        raise ArtifactMismatch.of(
            what="test labels and test scores", found=scores.shape, needed=labels.shape
        )
    finite = np.isfinite(scores)
    missing = int(len(scores) - finite.sum())
    note = f" Left out, without a finite score: {missing:,}." if missing else ""
    return labels[finite] > 0, scores[finite], note


def roc_points(labels: Array, scores: Array) -> tuple[Array, Array]:
    """False and true positive rates at every threshold, from (0, 0) to (1, 1).

    Args:
        labels: True for links.  # [num_pairs]
        scores: Finite scores.  # [num_pairs]
    """
    order = np.argsort(-scores, kind="stable")
    ends = np.r_[np.flatnonzero(np.diff(scores[order])), len(scores) - 1]
    true_positives = np.r_[0, np.cumsum(labels[order])[ends]]
    false_positives = np.r_[0, ends + 1] - true_positives
    return false_positives / false_positives[-1], true_positives / true_positives[-1]


def thin_roc(
    false_rates: Array, true_rates: Array, *, limit: int = MAX_ROC_POINTS
) -> tuple[Array, Array]:
    """At most ``limit`` of the points, evenly spread along the curve, both ends kept."""
    if len(false_rates) <= limit:
        return false_rates, true_rates
    # Both rates only grow, so their sum measures the way along the curve.
    kept = np.searchsorted(false_rates + true_rates, np.linspace(0, 2, limit - 1))
    kept = np.unique(np.r_[kept.clip(max=len(false_rates) - 1), len(false_rates) - 1])
    return false_rates[kept], true_rates[kept]
