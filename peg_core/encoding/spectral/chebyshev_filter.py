"""Polynomials that enlarge one end of the spectrum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from peg_core.encoding.row_chunks import scale_rows
from peg_core.encoding.spectral.density_of_states import DensityOfStates
from peg_core.encoding.spectral.normalised_operator import NormalisedOperator
from peg_core.graph.graph_store import FloatArray

# Odd degrees only: should an eigenvalue lie below ``lower``, the filter makes it very
# negative there, and it is not taken for a wanted one.
DEGREES = (33, 25, 17, 15, 13, 11, 9, 7, 5, 3)
HIGH_DEGREE_BELOW = 0.05
# The filter at the cut-off eigenvalue: far enough above 1 to forgive a wrong estimate.
CUT_AMPLIFICATION = 5.0
LOWER_MARGIN = 0.05


@dataclass(frozen=True)
class ChebyshevFilter:
    """``T_degree`` scaled so that eigenvalues of N in [lower, cut] stay within [-1, 1].

    Above ``cut`` the polynomial grows monotonically, the faster the higher the
    degree: there it keeps the order of the eigenvalues.

    Args:
        lower: A lower bound of the spectrum of N, at least -1.
        cut: Where the wanted end begins.
        degree: Products with N per filtered column.
    """

    lower: float
    cut: float
    degree: int

    @property
    def centre(self) -> float:
        return (self.cut + self.lower) / 2

    @property
    def half_width(self) -> float:
        return (self.cut - self.lower) / 2

    def values(self, eigenvalues: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The filter at eigenvalues of N."""
        scaled = (np.asarray(eigenvalues, dtype=np.float64) - self.centre) / self.half_width
        inside = np.cos(self.degree * np.arccos(np.clip(scaled, -1, 1)))
        outside = np.cosh(self.degree * np.arccosh(np.maximum(np.abs(scaled), 1)))
        outside *= np.where(scaled < 0, (-1.0) ** self.degree, 1.0)
        return np.where(np.abs(scaled) <= 1, inside, outside)

    def apply(
        self, operator: NormalisedOperator, block: FloatArray, workspace: FloatArray
    ) -> FloatArray:
        """Filter a block of columns in place; columns do not depend on each other.

        Args:
            operator: The normalised adjacency.
            block: [num_nodes, width], overwritten.
            workspace: [num_nodes, width], overwritten.

        Returns:
            ``block`` or ``workspace``, whichever holds the result.
        """
        scale_rows(block, operator.inverse_root_degrees, block)
        slope, shift = 1 / self.half_width, -self.centre / self.half_width
        before, current = block, workspace
        current[...] = 0  # memory that was never written may hold NaN, and 0 * NaN is NaN
        operator.step(before, current, alpha=slope, beta=shift, gamma=0.0)
        for _ in range(self.degree - 1):
            operator.step(current, before, alpha=2 * slope, beta=2 * shift, gamma=-1.0)
            before, current = current, before
        scale_rows(current, operator.root_degrees, current)
        return current


def choose_filter(density: DensityOfStates, *, number: float, precision: float) -> ChebyshevFilter:
    """A filter that enlarges about ``number`` eigenvalues.

    Args:
        density: Where the eigenvalues of N lie.
        number: Eigenvalues to be enlarged by at least ``CUT_AMPLIFICATION``.
        precision: Relative size of rounding errors that the result may show. Errors
            along the first eigenvector grow by the filter's value there, so this
            bounds how much more than others it may be enlarged.
    """
    lower = max(-1.0, density.lowest - LOWER_MARGIN)
    return choose_degree(
        lower=lower,
        cut=density.value_at(number),
        highest=density.highest,
        precision=precision,
        amplification=CUT_AMPLIFICATION,
    )


def choose_degree(
    *, lower: float, cut: float, highest: float, precision: float, amplification: float = 1.0
) -> ChebyshevFilter:
    """The filter of highest degree that rounding errors allow.

    Args:
        lower: A lower bound of the spectrum of N.
        cut: An eigenvalue of N to be enlarged by ``amplification``.
        highest: The largest eigenvalue of N below 1.
        precision: See :func:`choose_filter`.
        amplification: 1 makes ``cut`` the filter's cut, more lays it lower.
    """
    for degree in (d for d in DEGREES if d <= 17 or 1 - cut < HIGH_DEGREE_BELOW):
        excess = np.cosh(np.arccosh(amplification) / degree) - 1
        lowered = (cut + excess * lower / 2) / (1 + excess / 2)
        chosen = ChebyshevFilter(lower, float(max(lowered, lower + 0.01)), degree)
        if float(chosen.values(highest)) * precision < amplification:
            break
    return chosen
