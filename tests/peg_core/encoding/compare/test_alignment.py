"""Rotations between encodings, against scipy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given
from hypothesis import strategies as st

from peg_core.encoding.compare.alignment import align, eta, match_positions, subspace_angles
from peg_core.errors import ArtifactMismatch


def random_positions(seed, nodes=40, dimensions=5):
    return np.random.default_rng(seed).standard_normal((nodes, dimensions))


def random_rotation(seed, dimensions=5):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((dimensions, dimensions)))[0]


@given(seed=st.integers(0, 2**31))
def test_a_rotation_is_found_and_leaves_no_distance(seed):
    positions, rotation = random_positions(seed), random_rotation(seed + 1)
    found = match_positions(positions @ rotation, positions)
    np.testing.assert_allclose(found, rotation, atol=1e-8)
    assert eta(positions @ rotation, positions) < 1e-8


def test_matching_equals_scipys_procrustes():
    first, second = random_positions(1), random_positions(2)
    expected, _ = scipy.linalg.orthogonal_procrustes(second, first)
    np.testing.assert_allclose(match_positions(first, second), expected, atol=1e-10)
    assert eta(first, second) == pytest.approx(np.linalg.norm(first - second @ expected))


def test_eta_is_symmetric_and_keeps_the_triangle_inequality():
    a, b, c = (random_positions(seed) for seed in (1, 2, 3))
    assert eta(a, b) == pytest.approx(eta(b, a))
    assert eta(a, c) <= eta(a, b) + eta(b, c)


def test_angle_of_equal_spaces_is_zero_and_ignores_padding():
    positions = random_positions(1)
    padded = np.hstack([positions @ random_rotation(2), np.zeros((40, 1))])
    assert subspace_angles(np.hstack([positions, np.zeros((40, 1))]), padded).max() < 1e-6
    assert align(padded, padded).largest_angle < 1e-6
    assert align(padded, padded).relative_eta < 1e-8


def test_encodings_of_other_shapes_are_refused():
    with pytest.raises(ArtifactMismatch, match="two encodings"):
        eta(random_positions(1), random_positions(1, nodes=41))
