"""Gaps and the paper's constants, against the formulas as printed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from peg_core.encoding.compare.alignment import eta
from peg_core.encoding.spectral.eigengap import (
    choose_dimensions,
    gap_report,
    gaps,
    perturbation_bound,
    relative_gaps,
    stability_constant,
    stability_ratios,
    suggest_dimensions,
)
from peg_core.graph.graph_store import GraphStore
from tests.peg_core.encoding.conftest import dense_laplacian, random_blocks, store

VALUES = [0.0, 0.01, 0.02, 0.5, 0.52, 0.53]


def test_stability_ratio_is_the_gap_over_the_smallest_gap_so_far():
    for p in range(1, len(VALUES)):
        smallest = min(abs(VALUES[k - 1] - VALUES[k]) for k in range(1, p + 1))
        expected = abs(VALUES[p - 1] - VALUES[p]) / smallest
        assert stability_ratios(VALUES)[p - 1] == pytest.approx(expected)


def test_multiple_eigenvalues_give_a_finite_ratio():
    assert np.isfinite(stability_ratios([0.0, 0.0, 0.5])).all()
    assert relative_gaps([0.0, 0.0, 0.5]).tolist() == [0.0, 1.0]


def test_gaps_do_not_depend_on_the_order():
    np.testing.assert_allclose(gaps(VALUES[::-1]), gaps(VALUES))


def test_auto_takes_the_largest_relative_gap_in_range():
    assert choose_dimensions(VALUES, lowest=2, highest=5) == 3
    assert choose_dimensions(VALUES, lowest=4, highest=5) == 4
    assert choose_dimensions(VALUES, lowest=10, highest=20) == 6


def test_suggestions_are_sorted_by_relative_gap():
    found = suggest_dimensions(VALUES, count=2)
    assert [s.dimensions for s in found] == [3, 2]
    assert found[0].gap == pytest.approx(0.48)


def test_report_without_a_next_eigenvalue_has_no_gap():
    report = gap_report(VALUES, 6)
    assert report["gap"] is None
    assert report["rho"] is None


def test_constant_of_the_stability_theorem_as_printed():
    delta = 1 / 0.2
    expected = (7 * delta * 3.0 + 2 * 11) * 0.9 * 0.5 * 2.0 + 3 * delta
    found = stability_constant(
        gap=0.2,
        feature_norm=3.0,
        largest_degree=11,
        weight_norm=2.0,
        activation_lipschitz=0.9,
        gate_lipschitz=0.5,
    )
    assert found == pytest.approx(expected)
    assert math.isinf(stability_constant(gap=0.0, feature_norm=1, largest_degree=1, weight_norm=1))


@pytest.mark.parametrize("removed", [1, 10, 60])
def test_perturbed_graph_moves_the_encoding_within_lemma_3_4(removed):
    graph = store(random_blocks(size=30, inside=0.4))
    source, target = graph.edges()
    drop = np.random.default_rng(removed).permutation(len(source))[removed:]
    changed = GraphStore.from_edges(source[drop], target[drop], num_nodes=graph.num_nodes)
    first, second = dense_laplacian(graph), dense_laplacian(changed)
    (values, vectors), (others, moved) = np.linalg.eigh(first), np.linalg.eigh(second)
    p = 10
    bound = perturbation_bound(
        gap=max(values[p] - values[p - 1], others[p] - others[p - 1]),
        dimensions=p,
        operator_norm=np.linalg.norm(first - second, 2),
        frobenius_norm=np.linalg.norm(first - second),
    )
    assert 0 < eta(vectors[:, :p], moved[:, :p]) <= bound
