import numpy as np
import pytest

from peg_core.encoding.spectral.ritz_rotation import ritz_rotation


@pytest.mark.parametrize("locked", [0, 3])
@pytest.mark.parametrize("condition", [1.0, 1e4])
def test_rotated_columns_are_ritz_vectors_orthogonal_to_the_locked_ones(locked, condition):
    rng = np.random.default_rng(4)
    matrix = rng.normal(size=(80, 80))
    matrix = matrix + matrix.T
    values, vectors = np.linalg.eigh(matrix)
    fixed = vectors[:, ::-1][:, :locked]
    active = rng.normal(size=(80, 6)) @ np.diag(np.geomspace(1, condition, 6))
    active += condition * vectors[:, [40]]  # nearly dependent, as filtered columns are
    columns = np.concatenate([fixed, active], axis=1)
    found, rotation = ritz_rotation(
        columns.T @ active, columns.T @ matrix @ active, values[::-1][:locked]
    )
    ritz = columns @ rotation
    np.testing.assert_allclose(ritz.T @ ritz, np.eye(6), atol=1e-7)
    np.testing.assert_allclose(fixed.T @ ritz, 0, atol=1e-7)
    np.testing.assert_allclose(ritz.T @ matrix @ ritz, np.diag(found), atol=1e-5)
    assert (np.diff(found) <= 0).all()


def test_the_whole_space_gives_the_eigenvalues():
    rng = np.random.default_rng(5)
    matrix = rng.normal(size=(9, 9))
    matrix = matrix + matrix.T
    basis = rng.normal(size=(9, 9))
    found, _ = ritz_rotation(basis.T @ basis, basis.T @ matrix @ basis, np.zeros(0))
    np.testing.assert_allclose(found, np.linalg.eigvalsh(matrix)[::-1], atol=1e-8)
