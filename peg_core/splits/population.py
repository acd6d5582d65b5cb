"""Whom the held-out pairs are about: nodes that the training graph knows, and others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from peg_core.graph.graph_store import GraphStore

IntArray = npt.NDArray[np.integer[Any]]
Counts = npt.NDArray[np.int64]

# Degrees are compared in steps of a quarter of a power of two.
STEPS = 4
BINS = 63 * STEPS
# Share of cold pairs from which on they are told of, and ranked apart.
FEWEST_COLD = 0.01


class Population(TypedDict):
    """Pairs, those of them with a cold end, and how far the degrees of their ends have moved.

    ``degree_shift`` is the largest distance between the shares of ends up to a degree, of the
    test links and of the training links (Kolmogorov and Smirnov), 0 to 1; the medians are those
    of the two.
    """

    links: int
    cold_links: int
    non_links: int
    cold_non_links: int
    degree_shift: float
    median_test_degree: float
    median_train_degree: float


def cold_pairs(graph: GraphStore, source: IntArray, target: IntArray) -> npt.NDArray[np.bool_]:
    """Which pairs have an end without an edge in the graph, [num_pairs]."""
    return (_degrees(graph, source) == 0) | (_degrees(graph, target) == 0)


def describe_population(graph: GraphStore, chunks: Iterable[list[npt.NDArray[Any]]]) -> Population:
    """Compare held-out pairs with the training graph.

    Args:
        graph: The training graph.
        chunks: Source, target and label of the pairs, some at a time.
    """
    pairs, cold = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
    test = np.zeros(BINS, dtype=np.int64)
    for source, target, label in chunks:
        pairs += np.bincount(label, minlength=2)
        cold += np.bincount(label[cold_pairs(graph, source, target)], minlength=2)
        for ends in (source, target):
            # its own link counts for a training end: it does here, too
            test += _histogram(_degrees(graph, ends[label == 1]) + 1)
    degrees = np.asarray(graph.degrees, dtype=np.int64)
    linked = degrees[degrees > 0]
    train = _histogram(linked, linked)
    return {
        "links": int(pairs[1]),
        "cold_links": int(cold[1]),
        "non_links": int(pairs[0]),
        "cold_non_links": int(cold[0]),
        "degree_shift": _distance(test, train),
        "median_test_degree": _median(test),
        "median_train_degree": _median(train),
    }


def cold_shares(population: Population) -> dict[str, float]:
    """The shares of test links and non-links with a cold end; nothing where there are few."""
    counted = {
        "cold_links": (population["cold_links"], population["links"]),
        "cold_non_links": (population["cold_non_links"], population["non_links"]),
    }
    shares = {name: cold / max(pairs, 1) for name, (cold, pairs) in counted.items()}
    return shares if max(shares.values()) >= FEWEST_COLD else {}


def describe_cold(population: Population) -> str:
    """The shares in words; empty where there are few."""
    shares = cold_shares(population)
    if not shares:
        return ""
    return (
        f"cold (an end without a training edge): {shares['cold_links']:.1%} of links, "
        f"{shares['cold_non_links']:.1%} of non-links, which alone makes an AUC of "
        f"{auc_of_shares(shares['cold_links'], shares['cold_non_links']):.3f}"
    )


def auc_of_shares(links: float, non_links: float) -> float:
    """What ranking by one yes or no reaches, in the direction that is right more often.

    Args:
        links, non_links: Shares for which it is yes.
    """
    return 0.5 + abs(links - non_links) / 2


def subsets(population: Population) -> list[str]:
    """Warm and cold pairs, where there are enough cold ones to say something apart."""
    if not cold_shares(population):
        return []
    cold = min(population["cold_links"], population["cold_non_links"])
    warm = min(
        population["links"] - population["cold_links"],
        population["non_links"] - population["cold_non_links"],
    )
    return [name for name, pairs in (("warm", warm), ("cold", cold)) if pairs]


def _degrees(graph: GraphStore, nodes: IntArray) -> Counts:
    found: Counts = graph.indptr[nodes + 1] - graph.indptr[nodes]
    return found


def _histogram(degrees: Counts, weights: Counts | None = None) -> Counts:
    """How many ends have a degree in each step, [BINS]; degrees are at least 1."""
    bins = np.floor(STEPS * np.log2(degrees)).astype(np.int64)
    return np.bincount(bins, weights=weights, minlength=BINS).astype(np.int64)


def _distance(first: Counts, second: Counts) -> float:
    if not first.sum() or not second.sum():
        return 0.0
    shares = [np.cumsum(counts) / counts.sum() for counts in (first, second)]
    return float(np.abs(shares[0] - shares[1]).max())


def _median(counts: Counts) -> float:
    """The smallest degree of the step that holds it."""
    total = np.cumsum(counts)
    step = int(np.searchsorted(total, (total[-1] + 1) // 2))
    return float(np.ceil(2 ** (step / STEPS)))
