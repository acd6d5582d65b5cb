"""Numbers that no reader should miss, each as one sentence: what was found, and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from peg_core.splits.population import Population
from pipeline.report.formats import format_words

# Share of cold test links from which on the result is mostly about them.
MOST_COLD = 0.2
# Cold links and cold non-links whose shares differ by more are two populations.
MOST_APART = 0.2
# Largest distance between the degrees of test and training links; random splits stay below 0.1.
MOST_SHIFT = 0.3
# Standard deviation of the calibrated logits below which all scores are nearly the same.
LEAST_SPREAD = 0.1

Row = Mapping[str, Any]


def evaluation_rails(
    rows: Sequence[Row], population: Population, *, metric: str, features: bool
) -> list[str]:
    """What is wrong with a test.

    Args:
        rows: Of the first protocol, the model first; ``<metric>_low`` and ``_high`` beside it.
        population: Whom the test pairs are about.
        metric: By which the model is compared with the heuristics.
        features: Whether the model reads features of the nodes.
    """
    found = [
        below_chance(rows[0].get("auc"), population),
        below_heuristic(rows, metric, population["links"]),
        many_cold(population, features=features),
        other_degrees(population),
    ]
    return [text for text in found if text]


def below_chance(auc: float | None, population: Population) -> str:
    """The model ranks non-links above links."""
    if auc is None or auc >= 0.5:
        return ""
    cold = population["cold_links"] / max(population["links"], 1)
    others = population["cold_non_links"] / max(population["non_links"], 1)
    remedy = "look for what differs between training and test links, and do not use the scores"
    if abs(cold - others) > MOST_APART:
        remedy = (
            f"{cold:.1%} of the links and {others:.1%} of the non-links have a node without a "
            "training edge: set `evaluate.negatives: matched`"
        )
    pairs = population["links"] + population["non_links"]
    return f"test AUC is {auc:.4f} on {pairs:,} pairs, worse than chance; {remedy}"


def below_heuristic(rows: Sequence[Row], metric: str, links: int) -> str:
    """A heuristic lies above the interval of the model."""
    model, *others = rows
    known = [row for row in others if row.get(metric) is not None]
    if not known or model.get(metric) is None:
        return ""
    best = max(known, key=lambda row: row[metric])
    if best[metric] <= model.get(f"{metric}_high", model[metric]):
        return ""
    return (
        f"{format_words(best['method'])} needs no training and is better than the model on "
        f"{links:,} test links: {metric} {best[metric]:.4f} against {model[metric]:.4f}; train "
        "longer, or try other `encodings`, or use the heuristic"
    )


def many_cold(population: Population, *, features: bool) -> str:
    """Most of the test is about nodes that the training graph does not know."""
    cold, links = population["cold_links"], population["links"]
    if cold <= MOST_COLD * links:
        return ""
    remedy = (
        "their scores rest on node features alone, look at warm and cold pairs apart"
        if features
        else "nothing is known about such nodes without features: give `graph.features`, and look "
        "at the warm pairs"
    )
    return (
        f"{cold:,} of {links:,} test links ({cold / links:.1%}) have a node without a training "
        f"edge; {remedy}"
    )


def other_degrees(population: Population) -> str:
    """Test links are about other nodes than training links."""
    shift = population["degree_shift"]
    if shift <= MOST_SHIFT:
        return ""
    return (
        f"the ends of {population['links']:,} test links have other degrees than those of training "
        f"links: median {population['median_test_degree']:,.0f} against "
        f"{population['median_train_degree']:,.0f}, distance {shift:.2f} of 1; the test does not "
        "look like the training: hold out fewer links with a smaller `split.test`"
    )


def calibration_rails(slopes: Sequence[float], spreads: Sequence[float], pairs: int) -> list[str]:
    """What is wrong with the lines from logits to chances.

    Args:
        slopes: Of every model.
        spreads: Standard deviation of every model's logits, times the slope.
        pairs: Validation pairs that a line is fitted to.
    """
    slope, spread = min(slopes), min(map(abs, spreads))
    if slope < 0:
        return [
            f"calibration has the slope {slope:.4f} on {pairs:,} validation pairs: a higher logit "
            "means fewer links; the model has learned nothing that holds for them: train longer, "
            "and do not use the scores"
        ]
    if spread < LEAST_SPREAD:
        return [
            f"calibrated scores of {pairs:,} validation pairs are all nearly the same (slope "
            f"{slope:.4f}): the model cannot tell links from non-links; train longer, or give "
            "features"
        ]
    return []
