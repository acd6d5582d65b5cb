from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from peg_core.encoding.compare.alignment import align
from peg_core.encoding.compare.movement import measure_movement
from peg_core.errors import ArtifactMismatch


def positions(seed, rows=40, columns=3):
    return np.random.default_rng(seed).normal(size=(rows, columns))


@given(st.integers(0, 10**6), st.integers(2, 6))
def test_a_rotated_encoding_did_not_move(seed, columns):
    first = positions(seed, columns=columns)
    rotation = scipy.stats.ortho_group.rvs(columns, random_state=seed)
    movement = measure_movement(first, first @ rotation)
    np.testing.assert_allclose(movement.distances, 0, atol=1e-12)
    assert movement.relative_eta == pytest.approx(0, abs=1e-12)


@given(st.integers(0, 10**6))
def test_distances_are_those_after_scipys_procrustes_rotation(seed):
    first, second = positions(seed), positions(seed + 1)
    rotation, _ = scipy.linalg.orthogonal_procrustes(second, first)
    expected = first - second @ rotation
    movement = measure_movement(first, second)
    np.testing.assert_allclose(movement.distances, np.sqrt((expected**2).sum(axis=1)))
    assert movement.eta == pytest.approx(np.linalg.norm(expected))
    assert movement.relative_eta == pytest.approx(movement.eta / np.linalg.norm(first))


def test_eta_is_the_one_of_the_alignment_also_over_many_chunks():
    first = positions(1, rows=10_000).astype(np.float32)
    second = first + 0.1 * positions(2, rows=10_000).astype(np.float32)
    expected = align(first, second)
    movement = measure_movement(first, second)
    assert movement.eta == pytest.approx(expected.eta)
    assert movement.relative_eta == pytest.approx(expected.relative_eta)


def test_the_nodes_that_moved_most_come_first_equal_ones_by_index():
    first = np.vstack([positions(3, rows=500), np.zeros((3, 3))])
    second = first.copy()
    second[[17, 400]] += [[9.0, 0, 0], [0, 30.0, 0]]
    assert measure_movement(first, second).moved_most(2).tolist() == [400, 17]
    assert measure_movement(first, first).moved_most(1000).shape == (503,)
    still = measure_movement(np.zeros((4, 2)), np.zeros((4, 2)))
    assert still.moved_most(3).tolist() == [0, 1, 2]
    assert still.relative_eta == 0.0


def test_new_nodes_at_the_end_are_counted_and_not_compared():
    first = positions(4)
    movement = measure_movement(first, np.vstack([first, 100 * positions(5, rows=7)]))
    assert movement.new_nodes == 7
    assert len(movement.distances) == 40
    assert movement.eta == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("second", "hint"), [((40, 4), "same `dimensions`"), ((39, 3), "exchange A and B")]
)
def test_encodings_that_do_not_fit_are_refused_with_both_shapes(second, hint):
    message = rf"A has shape \(40, 3\) and B has shape \({second[0]}, {second[1]}\).*{hint}"
    with pytest.raises(ArtifactMismatch, match=message):
        measure_movement(positions(0), np.ones(second))
