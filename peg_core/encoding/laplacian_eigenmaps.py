"""Laplacian eigenmaps, solved component by component."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from peg_core.encoding.encoder import Encoder, Encoding
from peg_core.encoding.parameter_checks import require_encodable
from peg_core.encoding.spectral.component_spectra import NullColumns, solve_spectra
from peg_core.encoding.spectral.eigengap import choose_dimensions
from peg_core.encoding.spectral.solver import SOLVERS, Solver, SolverOptions
from peg_core.encoding.spectral.spectrum import ComponentMode, Spectrum, assemble_spectrum
from peg_core.encoding.spectral.spectrum_report import describe_spectrum
from peg_core.graph.graph_store import FloatArray, GraphStore

Preset = Literal["best", "faithful"]
NullVectors = Literal["preset", "deflate", "keep"]
Scale = Literal["preset", "commute", "sqrt_nodes", "plain"]
Rows = Literal["preset", "unit", "plain"]

PRESETS: dict[str, dict[str, str]] = {
    "best": {"null_vectors": "deflate", "scale": "commute", "rows": "unit"},
    "faithful": {"null_vectors": "keep", "scale": "plain", "rows": "plain"},
}
AUTO = "auto"


@dataclass(frozen=True)
class LaplacianEigenmaps(Encoder):
    """Place nodes by the smoothest eigenvectors of the normalised Laplacian.

    ``L = I - D^-1/2 A D^-1/2``. Eigenvectors are defined up to a rotation of each
    eigenspace. PEG reads only distances and inner products, so that freedom does
    not matter, unless the cut at ``dimensions`` splits an eigenspace: the report's
    gap says when it does. Isolated nodes are placed at the origin.

    Args:
        dimensions: Eigenvectors kept, p in the paper; "auto" cuts at the largest
            relative gap between ``smallest_dimensions`` and ``largest_dimensions``.
        tolerance: Largest residual ``||L u - lambda u||`` accepted.
        components: "merge" takes the smallest eigenvalues of the whole graph,
            "per_component" gives every component its own first eigenvectors in the
            same columns, "largest" leaves all but the largest at the origin.
        preset: "best" deflates null vectors, scales by "commute" and normalises rows;
            "faithful" does none of it.
        null_vectors: "deflate" leaves out the eigenvectors of eigenvalue 0, which
            carry component membership only; "keep" puts them first.
        scale: "commute" divides columns by sqrt(lambda) (commute-time distances),
            "sqrt_nodes" multiplies them by sqrt(nodes), "plain" leaves unit columns.
        rows: "unit" scales every node's position to length 1, "plain" does not.
        solver: "auto", "krylov_schur", "chebyshev", or "arpack" (scipy, the reference).
        smallest_dimensions: Lower end of "auto".
        largest_dimensions: Upper end of "auto".
    """

    version: ClassVar[int] = 2

    dimensions: int | Literal["auto"] = 128
    tolerance: float = 1e-3
    components: ComponentMode = "merge"
    preset: Preset = "best"
    null_vectors: NullVectors = "preset"
    scale: Scale = "preset"
    rows: Rows = "preset"
    solver: Solver = "auto"
    smallest_dimensions: int = 16
    largest_dimensions: int = 128

    def __post_init__(self) -> None:
        if self.dimensions != AUTO and (type(self.dimensions) is not int or self.dimensions < 1):
            raise ValueError(f"dimensions is {self.dimensions!r}, needed is 1 or more, or 'auto'")
        if not 0 < self.tolerance < 1:
            raise ValueError(f"tolerance is {self.tolerance}, needed is a number between 0 and 1")
        if not 1 <= self.smallest_dimensions <= self.largest_dimensions:
            raise ValueError(
                f"smallest_dimensions is {self.smallest_dimensions}, needed is a number from 1 "
                f"to largest_dimensions, {self.largest_dimensions}"
            )
        choices: dict[str, tuple[str, ...]] = {
            "components": get_args(ComponentMode),
            "preset": get_args(Preset),
            "null_vectors": get_args(NullVectors),
            "scale": get_args(Scale),
            "rows": get_args(Rows),
            "solver": SOLVERS,
        }
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise ValueError(f"{name} is {getattr(self, name)!r}, needed is one of {known}")
        if self.choice("scale") == "commute" and self.choice("null_vectors") == "keep":
            raise ValueError(
                "scale 'commute' divides by sqrt(lambda), which is 0 for null vectors; "
                "set null_vectors to 'deflate', or scale to 'sqrt_nodes' or 'plain'"
            )

    def choice(self, name: str) -> str:
        """A parameter, or what the preset says where it is "preset"."""
        value: str = getattr(self, name)
        return PRESETS[self.preset][name] if value == "preset" else value

    def solve(self, graph: GraphStore, *, seed: int) -> Encoding:
        """Positions, [num_nodes, dimensions]; missing columns are zero and said in the report."""
        spectrum = self.find_spectrum(graph, seed=seed)
        return Encoding(self.place(spectrum), self.describe(spectrum))

    def find_spectrum(
        self, graph: GraphStore, *, seed: int, start: FloatArray | None = None
    ) -> Spectrum:
        """The eigenvectors themselves, neither scaled nor normalised.

        Args:
            graph: The graph.
            seed: Of the run.
            start: Eigenvectors of a similar graph on the same nodes,
                [num_nodes, any]; new nodes from ``start_vectors``.
        """
        require_encodable(graph)
        most = self.largest_dimensions if self.dimensions == AUTO else int(self.dimensions)
        spectra = solve_spectra(
            graph,
            dimensions=most,
            null_columns=self._null_columns(),
            options=SolverOptions(self.solver, self.tolerance),
            seed=seed,
            largest_only=self.components == "largest",
            start=start,
        )
        spectrum = assemble_spectrum(
            graph,
            spectra,
            dimensions=most,
            mode=self.components,
            keep_null_vectors=self.choice("null_vectors") == "keep",
        )
        if self.dimensions == AUTO:
            lowest = self.smallest_dimensions
            best = choose_dimensions(spectrum.eigenvalues, lowest=lowest, highest=most)
            spectrum = spectrum.cut(best)
        return spectrum

    def _null_columns(self) -> NullColumns:
        if self.choice("null_vectors") == "deflate":
            return "none"
        return "one" if self.components == "per_component" else "all"

    def place(self, spectrum: Spectrum) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Positions from eigenvectors, scaled as the parameters say."""
        positions = spectrum.scaled(self.choice("scale"))
        if self.choice("rows") == "unit":
            length = np.linalg.norm(positions, axis=1, keepdims=True)
            np.divide(positions, length, out=positions, where=length > 0)
        return positions

    def describe(self, spectrum: Spectrum) -> dict[str, Any]:
        """JSON-ready facts about the spectrum and the choices made."""
        choices = {name: self.choice(name) for name in ("null_vectors", "scale", "rows")}
        facts = describe_spectrum(spectrum, tolerance=self.tolerance)
        return {**facts, **choices, "mode": self.components}
