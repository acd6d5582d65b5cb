"""Comparing encodings: they are defined up to a rotation, so rotate first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.linalg

from peg_core.encoding.row_chunks import chunks, gram
from peg_core.errors import ArtifactMismatch
from peg_core.graph.graph_store import FloatArray

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Alignment:
    """How two encodings of the same nodes relate.

    Args:
        rotation: Q* in O(p), [p, p].
        eta: ``||Z1 - Z2 Q*||_F``, the PE distance.
        relative_eta: eta over ``||Z1||_F``.
        largest_angle: Between the spanned subspaces, in radians.
    """

    rotation: Array
    eta: float
    relative_eta: float
    largest_angle: float


def match_positions(first: FloatArray, second: FloatArray) -> Array:
    """PE-matching: the Q in O(p) that minimises ``||first - second Q||_F``, [p, p]."""
    _check_shapes(first, second)
    left, _, right = np.linalg.svd(gram(second, first))
    return left @ right


def eta(first: FloatArray, second: FloatArray) -> float:
    """The distance of two encodings of the same nodes after the best rotation.

    Args:
        first: [num_nodes, p].
        second: [num_nodes, p].
    """
    return _distance(first, second, match_positions(first, second))


def align(first: FloatArray, second: FloatArray) -> Alignment:
    """Rotation, distance and angle between two encodings, [num_nodes, p] each."""
    rotation = match_positions(first, second)
    distance = _distance(first, second, rotation)
    length = float(np.sqrt(np.trace(gram(first, first))))
    return Alignment(
        rotation=rotation,
        eta=distance,
        relative_eta=distance / length if length else 0.0,
        largest_angle=float(subspace_angles(first, second).max(initial=0.0)),
    )


def subspace_angles(first: FloatArray, second: FloatArray) -> Array:
    """Principal angles between the column spaces, in radians, descending.

    Columns that are zero in either encoding (padding) are left out of it.
    """
    spaces = [z[:, np.any(z != 0, axis=0)].astype(np.float64) for z in (first, second)]
    if min(space.shape[1] for space in spaces) == 0:
        return np.zeros(0)
    return np.asarray(scipy.linalg.subspace_angles(*spaces))


def _distance(first: FloatArray, second: FloatArray, rotation: Array) -> float:
    total = 0.0
    for rows in chunks(slice(0, len(first))):
        difference = first[rows].astype(np.float64) - second[rows].astype(np.float64) @ rotation
        total += float(np.sum(difference * difference))
    return float(np.sqrt(total))


def _check_shapes(first: FloatArray, second: FloatArray) -> None:
    if first.shape != second.shape:
        raise ArtifactMismatch.of(
            what="the two encodings", found=f"shape {second.shape}", needed=f"{first.shape}"
        )
