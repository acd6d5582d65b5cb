"""Where a cut of the spectrum makes sense.

An encoding with p eigenvectors is stable when ``lambda_p`` and ``lambda_{p+1}`` lie
apart: the sensitivity of PEG is ``1 / (lambda_{p+1} - lambda_p)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

# Eigenvalues closer than this are one eigenvalue to a computation in floating point.
SMALLEST_GAP = 1e-12


@dataclass(frozen=True)
class Suggestion:
    """A number of dimensions that ends at a large gap."""

    dimensions: int
    gap: float
    relative_gap: float


def gaps(eigenvalues: npt.ArrayLike) -> Array:
    """``lambda_{p+1} - lambda_p`` for p = 1 .. count - 1, [count - 1]."""
    return np.diff(np.sort(np.asarray(eigenvalues, dtype=np.float64)))


def stability_ratios(eigenvalues: npt.ArrayLike) -> Array:
    """``rho_p``: the gap at p over the smallest gap up to p, [count - 1].

    How many times more stable a method is that depends on the gap at p alone than
    one that depends on every gap before it. Multiple eigenvalues make it infinite;
    here the smallest gap is taken as at least ``SMALLEST_GAP``.
    """
    gap = gaps(eigenvalues)
    return gap / np.maximum(np.minimum.accumulate(gap), SMALLEST_GAP)


def relative_gaps(eigenvalues: npt.ArrayLike) -> Array:
    """``(lambda_{p+1} - lambda_p) / lambda_{p+1}``, 0 where both are 0, [count - 1]."""
    values = np.sort(np.asarray(eigenvalues, dtype=np.float64))
    upper = values[1:]
    return np.divide(np.diff(values), upper, out=np.zeros(len(upper)), where=upper > SMALLEST_GAP)


def suggest_dimensions(
    eigenvalues: npt.ArrayLike, *, count: int = 3, lowest: int = 2
) -> list[Suggestion]:
    """The largest relative gaps from ``lowest`` on, best first."""
    relative, absolute = relative_gaps(eigenvalues), gaps(eigenvalues)
    candidates = np.arange(lowest - 1, len(relative))
    order = candidates[np.argsort(-relative[candidates], kind="stable")]
    return [
        Suggestion(int(at) + 1, float(absolute[at]), float(relative[at]))
        for at in order[:count]
        if absolute[at] > SMALLEST_GAP
    ]


def choose_dimensions(eigenvalues: npt.ArrayLike, *, lowest: int, highest: int) -> int:
    """The p in ``lowest .. highest`` with the largest relative gap after it.

    Fewer eigenvalues than ``lowest + 1`` leave no choice: all of them are used.
    """
    relative = relative_gaps(eigenvalues)[:highest]
    if len(relative) < lowest:
        return min(highest, len(np.asarray(eigenvalues)))
    return lowest + int(np.argmax(relative[lowest - 1 :]))


def gap_report(eigenvalues: npt.ArrayLike, dimensions: int) -> dict[str, Any]:
    """JSON-ready facts about the cut after ``dimensions`` eigenvalues.

    ``gap`` and ``rho`` are None where the next eigenvalue is not known.
    """
    values = np.sort(np.asarray(eigenvalues, dtype=np.float64))
    gap, ratio = gaps(values), stability_ratios(values)
    known = 1 <= dimensions <= len(gap)
    return {
        "gap": float(gap[dimensions - 1]) if known else None,
        "rho": float(ratio[dimensions - 1]) if known else None,
        "rho_by_dimensions": ratio.tolist(),
        "suggestions": [vars(s) for s in suggest_dimensions(values)],
    }


def stability_constant(
    *,
    gap: float,
    feature_norm: float,
    largest_degree: float,
    weight_norm: float,
    activation_lipschitz: float = 1.0,
    gate_lipschitz: float = 1.0,
) -> float:
    """The constant C of the stability theorem for one PEG layer on LE positions.

    ``C = (7 delta ||X|| + 2 d_max) l_psi l_phi ||W|| + 3 delta``, delta = 1 / gap: two
    graphs at distance d give outputs at most C d apart.

    Args:
        gap: ``lambda_{p+1} - lambda_p``; of two graphs, the larger of their gaps.
        feature_norm: Largest singular value of the first graph's features.
        largest_degree: Of the second graph.
        weight_norm: Largest singular value of the layer's weight.
        activation_lipschitz: Of psi; 1 for ReLU.
        gate_lipschitz: Of phi, the network that maps distances to edge weights.
    """
    if gap <= 0:
        return float("inf")
    delta = 1 / gap
    layer = activation_lipschitz * gate_lipschitz * weight_norm
    return (7 * delta * feature_norm + 2 * largest_degree) * layer + 3 * delta


def perturbation_bound(
    *, gap: float, dimensions: int, operator_norm: float, frobenius_norm: float
) -> float:
    """Lemma 3.4: how far a change of the Laplacian can move the encoding.

    ``eta(Z1, Z2) <= 2^(3/2) delta min(sqrt(p) ||L1 - L2||_op, ||L1 - L2||_F)``.
    """
    if gap <= 0:
        return float("inf")
    return 2**1.5 / gap * min(np.sqrt(dimensions) * operator_norm, frobenius_norm)
