from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler, normalize

from peg_core.graph import feature_transform
from peg_core.graph.feature_transform import (
    FeatureTransform,
    Moments,
    fit_principal_components,
    fit_scale,
    moments_of,
    random_projection,
    row_chunks,
)


@pytest.fixture
def rows():
    """Columns of very different size, one constant; a row of zeros."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(300, 12)) @ rng.normal(size=(12, 12)) * 10.0 ** np.arange(-3, 9)
    x[:, 3] = 0.1
    x[17] = 0
    return x.astype(np.float32)


def moments(rows, transform=None, *, products=True):
    return moments_of(rows, transform or FeatureTransform(), 0, len(rows), products=products)


def test_standardised_columns_equal_those_of_scikit_learn(rows):
    rows[:, 3] = 0.1  # constant without exception
    shift, scale = fit_scale(moments(rows, products=False))
    ours = FeatureTransform(shift=shift, scale=scale).apply(rows)
    theirs = StandardScaler().fit_transform(rows.astype(np.float64))
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    np.testing.assert_allclose(ours[:, 3], 0, atol=1e-6)


def test_normalised_rows_equal_those_of_scikit_learn(rows):
    ours = FeatureTransform(row_normalise=True).apply(rows)
    np.testing.assert_allclose(ours, normalize(rows.astype(np.float64)), atol=1e-6)
    np.testing.assert_array_equal(ours[17], 0)


@pytest.mark.parametrize("dimensions", [1, 5, 12])
def test_principal_components_equal_those_of_scikit_learn_up_to_sign(rows, dimensions):
    unit = normalize(rows.astype(np.float64))
    transform = FeatureTransform(row_normalise=True)
    found = moments(rows, transform)
    components, variances = fit_principal_components(found, dimensions)
    theirs = PCA(dimensions, svd_solver="full").fit(unit)
    np.testing.assert_allclose(variances, theirs.explained_variance_, rtol=1e-6, atol=1e-12)
    real = variances > 1e-9
    ours = FeatureTransform(True, centre=found.mean, components=components).apply(rows)
    expected = theirs.transform(unit)
    signs = np.sign((ours * expected).sum(axis=0))
    np.testing.assert_allclose((ours * signs)[:, real], expected[:, real], atol=1e-5)


def test_the_sign_of_a_component_is_settled(rows):
    components, _ = fit_principal_components(moments(rows), 6)
    mirrored, _ = fit_principal_components(moments(-rows), 6)
    np.testing.assert_allclose(components, mirrored)
    assert (components[np.abs(components).argmax(axis=0), range(6)] > 0).all()


def test_a_random_projection_keeps_inner_products_and_follows_its_seed(rows):
    x = normalize(np.random.default_rng(0).normal(size=(20, 1_000)))
    matrix = random_projection(1_000, 400, seed=3)
    np.testing.assert_allclose((x @ matrix) @ (x @ matrix).T, x @ x.T, atol=0.25)
    np.testing.assert_array_equal(matrix, random_projection(1_000, 400, seed=3))
    assert not np.allclose(matrix, random_projection(1_000, 400, seed=4))


@pytest.mark.parametrize("values", [1, 100, 12 * 299])
def test_the_size_of_a_chunk_does_not_change_the_result(rows, monkeypatch, values):
    def result():
        shift, scale = fit_scale(moments(rows, products=False))
        transform = FeatureTransform(True, shift=shift, scale=scale)
        found = moments(rows, transform)
        components, _ = fit_principal_components(found, 4)
        return FeatureTransform(True, shift, scale, found.mean, components).apply(rows)

    whole = result()
    monkeypatch.setattr(feature_transform, "CHUNK_VALUES", values)
    assert len(list(row_chunks(0, 300, 12))) > 1
    np.testing.assert_allclose(result(), whole, atol=1e-6)


@given(
    x=hnp.arrays(np.float64, (9, 3), elements=st.floats(-1e3, 1e3)),
    cuts=st.sets(st.integers(1, 8)),
    products=st.booleans(),
)
def test_moments_of_parts_add_up_to_those_of_the_whole(x, cuts, products):
    parts = [Moments.of(part, products=products) for part in np.split(x, sorted(cuts))]
    total = reduce(Moments.merge, parts)
    centred = x - x.mean(axis=0)
    scatter = centred.T @ centred if products else (centred**2).sum(axis=0)
    assert total.count == 9
    np.testing.assert_allclose(total.mean, x.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(total.scatter, scatter, atol=1e-6)


def test_moments_far_from_zero_do_not_cancel():
    x = np.array([[1e9], [1e9 + 1], [1e9 + 2], [1e9 + 3]])
    total = Moments.of(x[:2], products=False).merge(Moments.of(x[2:], products=False))
    np.testing.assert_allclose(total.scatter, [5.0], rtol=1e-9)


def test_transforms_and_moments_come_back_from_a_file(tmp_path, rows):
    found = moments(rows)
    found.save(tmp_path / "moments.safetensors")
    again = Moments.open(tmp_path / "moments.safetensors")
    assert again.count == 300
    np.testing.assert_array_equal(again.scatter, found.scatter)
    components, _ = fit_principal_components(found, 2)
    for transform in (FeatureTransform(), FeatureTransform(True, components=components)):
        transform.save(tmp_path / "transform.safetensors")
        opened = FeatureTransform.open(tmp_path / "transform.safetensors")
        np.testing.assert_array_equal(opened.apply(rows), transform.apply(rows))
