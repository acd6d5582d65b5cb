"""Numbers that no reader should miss, each as one sentence: what was found, and what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from peg_core.graph.edge_sides import Sides, lie_apart, look_bipartite
from peg_core.splits.population import Population
from pipeline.report.formats import format_words

# Share of cold test links from which on the result is mostly about them.
MOST_COLD = 0.2
# Cold links and cold non-links whose shares differ by more are two populations.
MOST_APART = 0.2
# Largest distance between the degrees of test and training links; random splits stay below 0.1.
MOST_SHIFT = 0.3
# Shares of a directed list that is really undirected: of the duplicates that are reversed, and
# of the rows that are reversed duplicates.
MOST_REVERSED = 0.5
FEWEST_BOTH_WAYS = 0.01
# Shares of ids from which on two kinds of node look like one: of the smaller one and of the other.
LEAST_SHARED = 0.9
LEAST_COVERED = 0.25
# Standard deviation of the calibrated logits below which all scores are nearly the same.
LEAST_SPREAD = 0.1
# What a user sees first of a ranking, whatever the model was chosen by.
TOP_METRIC = "mrr"

Row = Mapping[str, Any]


def side_rails(sides: Sides | None, source: str, target: str) -> list[str]:
    """What is wrong with an edge list that holds two kinds of node, and does not say so.

    Args:
        sides: The nodes of both columns; None: nobody looked at them.
        source, target: The columns.
    """
    if sides is None:
        return []
    columns = f"{source!r} ({sides['sources']:,} nodes) and {target!r} ({sides['targets']:,})"
    rows = f"in {sides['rows']:,} rows"
    if look_bipartite(sides):
        both = f"only {sides['both']:,} nodes stand" if sides["both"] else "no node stands"
        return [
            f"{both} in both {columns} {rows}, as if there were two kinds of node; if there are, "
            "set `graph.bipartite: true`: now non-links within one kind are drawn and nodes of one "
            "kind are recommended to each other"
        ]
    if lie_apart(sides):
        return [
            f"{sides['outside']:,} numbers in one of the columns {columns} lie beyond all of the "
            f"other {rows}, as if there were two kinds of node that share numbers; if there are, "
            "set `graph.bipartite: true`: now equal numbers in both columns are one node"
        ]
    return []


def kind_rails(
    *, relation: str, key: str, kind: str, other: str, shared: float, covered: float
) -> list[str]:
    """What is wrong with a kind of node that is another one under a second name.

    Args:
        relation: The only relation that names the kind.
        key: Its key that does, or should.
        kind, other: The kinds of its two ends.
        shared: Share of the ids of ``kind`` that are ids of ``other``.
        covered: Share of the ids of ``other`` that are ids of ``kind``.
    """
    if shared < LEAST_SHARED or covered < LEAST_COVERED:
        return []
    return [
        f"{shared:.1%} of the ids of the kind {kind!r} are ids of {other!r}, too, and no other "
        f"relation has nodes of the kind {kind!r}; if they are the same nodes, set "
        f"`{key}: {other}` in the relation {relation!r}"
    ]


def direction_rails(*, rows: int, duplicates: int, reversed_duplicates: int) -> list[str]:
    """What is wrong with a list that says ``directed`` and gives its links both ways.

    Args:
        rows: Rows of the list.
        duplicates: Rows that repeat another one.
        reversed_duplicates: Links that are also listed the other way round.
    """
    repeated = duplicates + reversed_duplicates
    few = reversed_duplicates < FEWEST_BOTH_WAYS * rows
    if not reversed_duplicates or few or reversed_duplicates < MOST_REVERSED * repeated:
        return []
    return [
        f"{reversed_duplicates:,} of {repeated:,} duplicates in {rows:,} rows are reversed, as in "
        "a list without direction; if (u, v) and (v, u) mean the same, leave `directed` out"
    ]


def evaluation_rails(
    rows: Sequence[Row],
    population: Population,
    *,
    metric: str,
    features: bool,
    tables: Mapping[str, Sequence[Row]] | None = None,
    stacked: bool = False,
) -> list[str]:
    """What is wrong with a test.

    Args:
        rows: Of the first protocol, the model first; ``<metric>_low`` and ``_high`` beside it.
        population: Whom the test pairs are about.
        metric: By which the model is compared with the heuristics; and by MRR, which says who is
            ahead at the very top.
        features: Whether the model reads features of the nodes.
        tables: Rows of all protocols, warm and cold pairs apart, by the heading of their table.
        stacked: Whether the model's logit is stacked on counts already.
    """
    found = [
        below_chance(rows[0].get("auc"), population)
        or below_chance_in_part(tables or {}, population, features=features),
        below_heuristic(rows, metric, population["links"], stacked=stacked)
        or below_heuristic(rows, TOP_METRIC, population["links"], stacked=stacked),
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


def below_chance_in_part(
    tables: Mapping[str, Sequence[Row]], population: Population, *, features: bool
) -> str:
    """The model ranks non-links above links, but not in the table that is looked at first."""
    low = {
        heading: rows[0]["auc"]
        for heading, rows in tables.items()
        if rows and rows[0].get("auc") is not None and rows[0]["auc"] < 0.5
    }
    if not low:
        return ""
    told = " and ".join(
        f"{auc:.4f} on {_pairs(heading, population):,} pairs ({heading})"
        for heading, auc in low.items()
    )
    remedy = "do not use the scores of such pairs"
    if not features and all(heading.endswith("cold pairs") for heading in low):
        remedy += ", or give `graph.features`: nothing else is known about a cold node"
    return f"test AUC is {told}, worse than chance; {remedy}"


def _pairs(heading: str, population: Population) -> int:
    """How many pairs a table is about."""
    cold = population["cold_links"] + population["cold_non_links"]
    pairs = population["links"] + population["non_links"]
    if heading.endswith("cold pairs"):
        return cold
    return pairs - cold if heading.endswith("warm pairs") else pairs


def below_heuristic(rows: Sequence[Row], metric: str, links: int, *, stacked: bool) -> str:
    """A heuristic lies above the interval of the model."""
    model, *others = rows
    known = [row for row in others if row.get(metric) is not None]
    if not known or model.get(metric) is None:
        return ""
    best = max(known, key=lambda row: row[metric])
    if best[metric] <= model.get(f"{metric}_high", model[metric]):
        return ""
    remedy = "" if stacked else "set `calibrate.stack: true`, "
    return (
        f"{format_words(best['method'])} needs no training and is better than the model on "
        f"{links:,} test links: {metric} {best[metric]:.4f} against {model[metric]:.4f}; "
        f"{remedy}train longer, try other `encodings`, or use the heuristic"
    )


def many_cold(population: Population, *, features: bool) -> str:
    """Most of the test is about nodes that the training graph does not know."""
    cold, links = population["cold_links"], population["links"]
    if cold <= MOST_COLD * links:
        return ""
    look = "" if cold == links else ", look at warm and cold pairs apart"
    remedy = f"their scores rest on node features alone{look}"
    if not features:
        look = "" if cold == links else ", and look at the warm pairs"
        remedy = "nothing is known about such nodes without features: give `graph.features`" + look
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
