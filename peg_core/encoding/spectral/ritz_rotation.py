"""From sums over rows to the rotation into Ritz vectors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

# Directions that hold less than this share of a unit column are rounding errors.
SMALLEST_SHARE = 1e-13


def ritz_rotation(overlaps: Array, images: Array, locked_values: Array) -> tuple[Array, Array]:
    """The rotation that turns filtered columns into Ritz vectors of N.

    Of ``Y = [locked, active]`` the locked columns are orthonormal eigenvectors that stay
    as they are; the active ones are made orthogonal to them, orthonormal, and diagonal
    in N, all in one rotation: tall matrices are touched once.

    Args:
        overlaps: ``Y^T Y_active``, [columns, active], summed in float64: the columns
            of a filtered block are nearly dependent.
        images: ``Y^T N Y_active``, [columns, active].
        locked_values: Eigenvalues of N of the locked columns, [locked].

    Returns:
        Ritz values, descending, [active], and R, [columns, active]: the Ritz vectors
        are ``Y R``.
    """
    locked = len(locked_values)
    along = overlaps[:locked]  # what the active columns hold of the locked ones
    cross = along.T @ images[:locked]
    square = overlaps[locked:] - along.T @ along
    middle = images[locked:] - cross - cross.T + along.T @ (locked_values[:, None] * along)
    scale = np.sqrt(np.maximum(np.diag(square), np.finfo(np.float64).tiny))
    shares, vectors = np.linalg.eigh(_symmetric(square / np.outer(scale, scale)))
    basis = vectors / scale[:, None] / np.sqrt(np.maximum(shares, SMALLEST_SHARE))
    values, ritz = np.linalg.eigh(_symmetric(basis.T @ middle @ basis))
    own = basis @ ritz[:, ::-1]
    return values[::-1], np.concatenate([-along @ own, own])


def _symmetric(matrix: Array) -> Array:
    return (matrix + matrix.T) / 2
