"""What a user should know about an encoding by eigenvectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from peg_core.encoding.spectral.eigengap import gap_report
from peg_core.encoding.spectral.solve_limits import cluster_limits
from peg_core.encoding.spectral.spectrum import Spectrum

SAME_EIGENVALUE = 1e-9


def describe_spectrum(spectrum: Spectrum, *, tolerance: float) -> dict[str, Any]:
    """JSON-ready facts: eigenvalues, residuals, the gap at the cut, components, warnings."""
    gap = gap_report(spectrum.eigenvalues, spectrum.filled)
    largest = float(spectrum.residuals.max()) if spectrum.filled else 0.0
    return {
        "dimensions": spectrum.dimensions,
        "eigenvalues": spectrum.eigenvalues.tolist(),
        "residuals": spectrum.residuals.tolist(),
        "largest_residual": largest,
        "tolerance": tolerance,
        **gap,
        "components": spectrum.num_components,
        "isolated_nodes": spectrum.num_isolated,
        "zeros": spectrum.num_zeros,
        "padded_columns": spectrum.dimensions - spectrum.filled,
        "solver": "+".join(spectrum.solvers) or "none",
        "operator_applications": spectrum.applications,
        "warnings": list(_warnings(spectrum, gap, largest, tolerance)),
    }


def _warnings(
    spectrum: Spectrum, gap: dict[str, Any], largest: float, tolerance: float
) -> list[str]:
    found = []
    filled = spectrum.eigenvalues[: spectrum.filled]
    if spectrum.filled and spectrum.component_values is None and filled[-1] == 0:
        found.append(
            f"all {spectrum.filled} eigenvectors have eigenvalue 0 (the graph has "
            f"{spectrum.num_zeros:,} components with edges): positions carry component membership "
            "only; set null_vectors to 'deflate', or components to 'per_component' or 'largest'"
        )
    if spectrum.filled < spectrum.dimensions:
        found.append(
            f"the graph has {spectrum.filled} usable eigenvectors, {spectrum.dimensions} were "
            "asked for: the other columns are zero; lower `dimensions`"
        )
    # eigenvalues closer than their residual cannot be told apart
    same = gap["gap"] is not None and gap["gap"] <= max(spectrum.residuals[-1], SAME_EIGENVALUE)
    in_cluster = same and _above_in_cluster_alone(spectrum, tolerance)
    if largest > tolerance and not in_cluster:
        found.append(
            f"the largest residual is {largest:.1e}, above the tolerance of {tolerance:.1e}: the "
            "solver spent its budget or stopped gaining; the result is used as it is; lower "
            "`dimensions`, set it to 'auto', or raise `tolerance`"
        )
    if same:
        found.append(
            f"lambda_p and lambda_p+1 are {gap['gap']:.1e} apart: the cut at {spectrum.filled} "
            "splits an eigenspace, so which vectors are kept is a matter of chance "
            f"(largest residual {largest:.1e}); {_better_cut(gap)}"
        )
    return found


def _above_in_cluster_alone(spectrum: Spectrum, tolerance: float) -> bool:
    """Whether residuals above the tolerance only mix eigenvectors of the cluster at the cut."""
    limits = cluster_limits(
        np.full(spectrum.filled, tolerance), spectrum.eigenvalues[: spectrum.filled], tolerance
    )
    return bool((spectrum.residuals <= limits).all())


def _better_cut(gap: dict[str, Any]) -> str:
    ends = ", ".join(str(s["dimensions"]) for s in gap["suggestions"])
    return f"larger gaps follow {ends} dimensions" if ends else "no number of dimensions has a gap"
