"""Starting vectors from an earlier encoding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from peg_core.encoding.spectral.component_spectra import induced_component
from peg_core.encoding.spectral.density_of_states import estimate_density
from peg_core.encoding.spectral.normalised_operator import NormalisedOperator
from peg_core.encoding.spectral.spectrum import Spectrum
from peg_core.encoding.spectral.subspace_refinement import EDGE_STEPS, REFINED
from peg_core.errors import ArtifactMismatch
from peg_core.graph.graph_store import FloatArray, GraphStore
from peg_core.kernels.thread_spans import one_blas_thread
from peg_core.random_streams import random_stream

SWEEPS = 3


def start_vectors(
    graph: GraphStore, earlier: FloatArray, known: npt.NDArray[np.bool_] | None = None
) -> npt.NDArray[np.float32]:
    """Eigenvectors of an earlier graph as a start for this one.

    New nodes get the average over their neighbours of ``x / sqrt(degree)``, the
    quantity that is smooth along edges; nodes with no known neighbour wait for the
    next sweep, and stay at 0 if it never reaches them.

    Args:
        graph: The graph to solve.
        earlier: Rows of this graph's nodes, [num_nodes, count]; rows of new nodes
            are ignored.
        known: Which nodes the earlier encoding had, [num_nodes]; None for all.
    """
    if len(earlier) != graph.num_nodes:
        raise ArtifactMismatch.of(
            what="an earlier encoding and the graph",
            found=f"{len(earlier):,} rows",
            needed=f"{graph.num_nodes:,}, one per node",
        )
    vectors = np.array(earlier, dtype=np.float32)
    if known is None or known.all():
        return vectors
    done = known.copy()
    vectors[~done] = 0
    root = np.sqrt(np.maximum(graph.weighted_degrees, 1e-30)).astype(np.float32)[:, None]
    adjacency = graph.adjacency(np.float32)
    for _ in range(SWEEPS):
        waiting = np.flatnonzero(~done)
        rows = adjacency[waiting]
        weight = rows @ done.astype(np.float32)
        reached = weight > 0
        if not reached.any():
            break
        sums = rows[reached] @ (vectors / root)
        nodes = waiting[reached]
        vectors[nodes] = sums / weight[reached, None] * root[nodes]
        done[nodes] = True
    return vectors


def was_refined(spectrum: Spectrum) -> bool:
    """Whether a start was used; where the spectrum has no gap at the cut the solver drops it."""
    return REFINED in spectrum.solvers


def with_next_eigenvalue(graph: GraphStore, spectrum: Spectrum, *, seed: int) -> Spectrum:
    """Add the estimated eigenvalue after the last column, which refining a start leaves out.

    Lanczos steps outside the known vectors approach it from above, so that the gap at
    the cut comes out a little too large.

    Args:
        graph: The graph.
        spectrum: Refined eigenvectors of it.
        seed: Of the probes.
    """
    nodes = np.flatnonzero(spectrum.labels == 0)
    inside = spectrum.vectors[nodes]
    own = inside[:, np.any(inside != 0, axis=0)]
    with one_blas_thread():
        operator = NormalisedOperator(induced_component(graph, nodes), np.float32)
        stream = random_stream(seed=seed, purpose="next eigenvalue")
        edge = estimate_density(operator, stream, steps=EDGE_STEPS, deflated=own).highest
    known = spectrum.eigenvalues[spectrum.filled :]  # of smaller components
    following = min([1 - edge, *known.tolist()])
    return replace(
        spectrum,
        eigenvalues=np.append(spectrum.eigenvalues[: spectrum.filled], following),
        applications=spectrum.applications + operator.applications,
    )


def vectors_to_keep(spectrum: Spectrum) -> npt.NDArray[np.float32]:
    """The eigenvectors that a later start can use: null vectors are known anyway."""
    filled = spectrum.filled
    return np.ascontiguousarray(spectrum.vectors[:, :filled][:, spectrum.eigenvalues[:filled] > 0])
