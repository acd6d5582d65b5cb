import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cosine, sqeuclidean

from peg_core.kernels.pair_geometry import NUM_GEOMETRIC
from peg_core.models.pair_geometry import pair_geometry


def example(seed, widths=(5, 33)):
    rng = np.random.default_rng(seed)
    positions = [rng.normal(size=(20, width)).astype(np.float32) for width in widths]
    source, target = rng.integers(0, 20, size=(2, 50))
    return positions, source, target


@given(seed=st.integers(0, 10**6))
def test_the_numbers_of_a_pair_are_those_of_scipy(seed):
    positions, source, target = example(seed)
    found = pair_geometry(positions, source, target)
    assert found.shape == (50, NUM_GEOMETRIC * len(positions))
    for row, first, second in zip(found, source, target, strict=True):
        expected = []
        for z in positions:
            a, b = z[first].astype(float), z[second].astype(float)
            expected += [a @ b, sqeuclidean(a, b), 1 - cosine(a, b)]
        np.testing.assert_allclose(row, expected, rtol=1e-4, atol=1e-4)


@given(seed=st.integers(0, 10**6))
def test_rotated_and_reflected_positions_say_the_same(seed):
    positions, source, target = example(seed)
    rng = np.random.default_rng(seed)
    turned = []
    for z in positions:
        rotation, _ = np.linalg.qr(rng.normal(size=(z.shape[1], z.shape[1])))
        turned.append((z @ rotation).astype(np.float32))
    found, expected = (pair_geometry(zs, source, target) for zs in (turned, positions))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_a_node_at_the_origin_has_no_direction():
    z = np.array([[0, 0], [3, 4]], dtype=np.float32)
    np.testing.assert_array_equal(pair_geometry([z], np.array([0]), np.array([1])), [[0, 25, 0]])
