"""The smallest eigenvalues of L on one connected component, by the solver that fits."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse
import scipy.sparse.linalg

from peg_core.encoding.spectral.block_krylov_schur import solve_krylov_schur
from peg_core.encoding.spectral.chebyshev_subspace import solve_chebyshev
from peg_core.encoding.spectral.eigenpairs import Eigenpairs
from peg_core.encoding.spectral.normalised_operator import NormalisedOperator
from peg_core.encoding.spectral.solve_limits import (
    application_budget,
    cluster_limits,
    is_large,
)
from peg_core.encoding.spectral.subspace_refinement import refine_subspace
from peg_core.graph.graph_store import FloatArray, GraphStore
from peg_core.kernels.thread_spans import one_blas_thread

Solver = Literal["auto", "krylov_schur", "chebyshev", "arpack"]
SOLVERS: tuple[Solver, ...] = ("auto", "krylov_schur", "chebyshev", "arpack")

# Up to this many nodes a component is solved densely: exact, and faster than iterating.
DENSE_NODES = 512
# Iterating for more than this share of all eigenvectors is slower than solving densely.
DENSE_SHARE = 1 / 8
# Below this tolerance float32 cannot go.
FLOAT32_TOLERANCE = 2e-6

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SolverOptions:
    """How to solve.

    Args:
        solver: "auto" is "krylov_schur", after an attempt to refine a given start.
        tolerance: Largest ``||L u - lambda u||`` of the wanted vectors.
    """

    solver: Solver = "auto"
    tolerance: float = 1e-3


def is_dense(num_nodes: int, wanted: int) -> bool:
    """Whether a component is solved densely."""
    return num_nodes <= DENSE_NODES or wanted + 1 >= num_nodes * DENSE_SHARE


def solve_component(
    graph: GraphStore,
    *,
    wanted: int,
    extra: int,
    options: SolverOptions,
    stream: np.random.Generator,
    start: FloatArray | None = None,
) -> Eigenpairs:
    """The ``wanted + extra`` smallest non-zero eigenvalues of a connected graph.

    Args:
        graph: One connected component of at least two nodes.
        wanted: Eigenpairs that must reach the tolerance.
        extra: Further eigenpairs whose eigenvalues are of interest.
        options: How to solve.
        stream: Randomness of this component alone.
        start: Vectors near the wanted ones, [num_nodes, any], or None. Where it can be
            refined, only the wanted eigenpairs are returned.
    """
    if is_dense(graph.num_nodes, wanted + extra):
        return solve_dense(graph, count=min(wanted + extra, graph.num_nodes - 1))
    if options.solver == "arpack":
        return solve_arpack(graph, count=wanted + extra, options=options, stream=stream)
    kind = np.float32 if options.tolerance >= FLOAT32_TOLERANCE else np.float64
    with one_blas_thread():
        return _iterate_to_tolerance(graph, kind, wanted, extra, options, stream, start)


def _iterate_to_tolerance(
    graph: GraphStore,
    kind: type[np.floating[Any]],
    wanted: int,
    extra: int,
    options: SolverOptions,
    stream: np.random.Generator,
    start: FloatArray | None,
) -> Eigenpairs:
    """In float32 where that is enough, else in float64 with what is left of the budget."""
    budget = application_budget(graph.num_nodes, wanted + extra)
    operator = NormalisedOperator(graph, kind)
    pairs = _iterate(operator, wanted, extra, options, budget, stream, start)
    if kind is np.float64 or _is_accepted(pairs, wanted, options.tolerance):
        return pairs
    if is_large(graph.num_nodes):
        budget -= pairs.applications
    if budget > 0:
        logger.info("float32 ended at a residual of %.1e: float64", pairs.residuals.max())
        again = replace(options, solver="krylov_schur")
        operator = NormalisedOperator(graph, np.float64)
        later = _iterate(operator, wanted, extra, again, budget, stream, None)
        if is_large(graph.num_nodes) and later.residuals.max() > pairs.residuals.max():
            later = replace(pairs, applications=pairs.applications + later.applications)
        return later
    return pairs


def _is_accepted(pairs: Eigenpairs, wanted: int, tolerance: float) -> bool:
    """Whether float64 would not do better."""
    limits = np.full(wanted, tolerance)
    if is_large(len(pairs.vectors)):
        limits = cluster_limits(limits, pairs.values[:wanted], tolerance)
    return bool((pairs.residuals[:wanted] <= limits).all())


def _iterate(
    operator: NormalisedOperator,
    wanted: int,
    extra: int,
    options: SolverOptions,
    budget: int,
    stream: np.random.Generator,
    start: FloatArray | None,
) -> Eigenpairs:
    tolerance = options.tolerance
    if start is not None and options.solver == "auto":
        pairs = refine_subspace(
            operator, wanted=wanted, tolerance=tolerance, stream=stream, start=start
        )
        if pairs is not None:
            return pairs
        logger.info("no gap after %d eigenvalues: the start does not help", wanted)
    solve = solve_chebyshev if options.solver == "chebyshev" else solve_krylov_schur
    return solve(
        operator, wanted=wanted, extra=extra, tolerance=tolerance, budget=budget, stream=stream
    )


def solve_dense(graph: GraphStore, *, count: int) -> Eigenpairs:
    """All eigenvectors by ``numpy.linalg.eigh``, the first ``count`` of them kept."""
    laplacian = normalised_laplacian(graph).toarray()
    values, vectors, residuals = dense_eigenpairs(laplacian[None], count=count)
    return Eigenpairs(values[0], vectors[0], residuals[0], solver="dense")


def dense_eigenpairs(
    laplacians: npt.NDArray[np.float64], *, count: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Eigenpairs 2 .. count + 1 of connected graphs of equal size.

    Args:
        laplacians: [graphs, size, size].
        count: Eigenpairs to return.

    Returns:
        Values [graphs, count], vectors [graphs, size, count], residuals [graphs, count].
    """
    values, vectors = np.linalg.eigh(laplacians)
    values, vectors = values[:, 1 : count + 1], vectors[:, :, 1 : count + 1]
    residuals = np.linalg.norm(laplacians @ vectors - vectors * values[:, None, :], axis=1)
    return values, vectors, residuals


def solve_arpack(
    graph: GraphStore, *, count: int, options: SolverOptions, stream: np.random.Generator
) -> Eigenpairs:
    """scipy's ``eigsh``: the reference."""
    laplacian = normalised_laplacian(graph)
    shifted = scipy.sparse.eye_array(graph.num_nodes, format="csr") - laplacian
    # ARPACK's tolerance is relative to the eigenvalue of N, which is 1 at this end
    values, vectors = scipy.sparse.linalg.eigsh(
        shifted,
        k=count + 1,
        which="LA",
        tol=options.tolerance,
        v0=stream.standard_normal(graph.num_nodes),
    )
    order = np.argsort(-values, kind="stable")[1:]
    values, vectors = 1 - values[order], vectors[:, order]
    residuals = np.linalg.norm(laplacian @ vectors - vectors * values, axis=0)
    return Eigenpairs(values, vectors, residuals, solver="arpack")


def normalised_laplacian(graph: GraphStore) -> scipy.sparse.csr_array:
    """``I - D^-1/2 A D^-1/2`` in float64; rows of isolated nodes are those of I."""
    degrees = graph.weighted_degrees
    inverse = np.divide(1.0, np.sqrt(degrees), out=np.zeros_like(degrees), where=degrees > 0)
    scaling = scipy.sparse.dia_array((inverse[None], [0]), shape=(len(inverse), len(inverse)))
    adjacency = scaling @ graph.adjacency(np.float64) @ scaling
    return (scipy.sparse.eye_array(graph.num_nodes, format="csr") - adjacency).tocsr()
