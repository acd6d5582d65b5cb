"""A graph as its largest component, solved by many tasks, and the rest, solved by one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypedDict

import numpy as np
import numpy.typing as npt

from peg_core.atomic_file import write_array
from peg_core.encoding.laplacian_eigenmaps import AUTO, LaplacianEigenmaps
from peg_core.encoding.parameter_checks import WeightNotPositive
from peg_core.encoding.spectral.solver import is_dense
from peg_core.graph.components import connected_components
from peg_core.graph.graph_store import GraphStore
from peg_core.mapped_array import new_mapped_array
from peg_core.splits.entry_chunk import entry_chunks
from peg_core.storage.stored_path import remove
from workers.artifact_ref import ArtifactRef
from workers.distributed_encoding.encoded_graph import is_kept
from workers.tasks.encode import EncodeRequest, open_graph


class RestResult(TypedDict):
    """What is known of the smaller components beside their eigenvectors."""

    eigenvalues: list[float]
    residuals: list[float]
    solvers: list[str]
    applications: int


class PartsResult(TypedDict):
    """The fields of :class:`GraphParts`, leaked links and edges of the graph."""

    distributed: Literal[True]
    leaks: dict[str, int]
    edges: int
    num_nodes: int
    node_bounds: list[int]
    large_bounds: list[int]
    rest_bounds: list[int]
    volume: float
    wanted: int
    extra: int
    counts: dict[str, int]
    rest: RestResult


class OneTaskResult(TypedDict):
    """One task suffices for the whole graph."""

    distributed: Literal[False]


@dataclass(frozen=True)
class GraphParts:
    """Where the parts of a graph lie; what :func:`prepare_task` found.

    Nodes of a part are ascending, so a range of nodes is a range of its rows.

    Args:
        folder: Holds ``large-nodes.npy``, ``rest-nodes.npy`` (nodes of the graph, one per
            row) and ``rest-vectors.npy``, [rest rows, dimensions].
        component: The largest component.
        num_nodes: Of the whole graph.
        node_bounds: Nodes at which chunks begin, and the end, [chunks + 1].
        large_bounds, rest_bounds: The same as rows of the two parts.
        volume: Sum of the largest component's weighted degrees.
        wanted, extra: Eigenpairs that the largest component has to deliver.
        counts: Components, isolated nodes, and copies of the eigenvalue 0.
        rest: Eigenvalues, residuals, solvers and applications of the rest.
    """

    folder: Path
    component: ArtifactRef[GraphStore]
    num_nodes: int
    node_bounds: tuple[int, ...]
    large_bounds: tuple[int, ...]
    rest_bounds: tuple[int, ...]
    volume: float
    wanted: int
    extra: int
    counts: dict[str, int]
    rest: RestResult

    @classmethod
    def from_result(cls, request: EncodeRequest, folder: Path, result: PartsResult) -> GraphParts:
        """Read back the marker of :func:`prepare_task`."""
        connected = result["large_bounds"][-1] == result["num_nodes"]
        return cls(
            folder=folder,
            component=component_ref(request, folder, connected=connected),
            num_nodes=result["num_nodes"],
            node_bounds=tuple(result["node_bounds"]),
            large_bounds=tuple(result["large_bounds"]),
            rest_bounds=tuple(result["rest_bounds"]),
            volume=result["volume"],
            wanted=result["wanted"],
            extra=result["extra"],
            counts=result["counts"],
            rest=result["rest"],
        )


def widest(encoder: LaplacianEigenmaps) -> LaplacianEigenmaps:
    """The encoder with as many columns as "auto" may choose from."""
    if encoder.dimensions != AUTO:
        return encoder
    return replace(encoder, dimensions=encoder.largest_dimensions)


def prepare_task(
    request: EncodeRequest, folder: Path, chunk_rows: int, above: int
) -> PartsResult | OneTaskResult:
    """Take a graph apart, and solve all but its largest component.

    Args:
        request: Laplacian eigenmaps of a graph.
        folder: Where the parts are written.
        chunk_rows: Nodes of a chunk.
        above: Nodes the largest component must have more than.

    Returns:
        What was found, unless one task suffices for the whole graph.
    """
    encoder = widest(LaplacianEigenmaps(**request.parameters))
    graph, leaks = open_graph(request)
    if graph.weights is not None and len(graph.weights) and float(graph.weights.min()) <= 0:
        raise WeightNotPositive.of(float(graph.weights.min()))
    components, labels = connected_components(graph)
    sizes = np.bincount(labels, minlength=components)
    zeros = int((sizes > 1).sum())
    inside = labels == np.argmax(sizes)
    large = np.flatnonzero(inside).astype(np.int64)
    wanted, extra = _eigenpairs_to_find(encoder, zeros)
    if len(large) <= above or wanted == 0 or is_dense(len(large), wanted + extra):
        return {"distributed": False}
    rest = np.flatnonzero(~inside & (graph.degrees > 0)).astype(np.int64)
    reference = component_ref(request, folder, connected=len(large) == graph.num_nodes)
    if reference != request.message_graph:
        save_component(graph, large, reference.folder)
    volume = float(reference.open().weighted_degrees.sum())
    cuts = [*range(0, graph.num_nodes, chunk_rows), graph.num_nodes]
    write_array(folder / "large-nodes.npy", large)
    write_array(folder / "rest-nodes.npy", rest)
    return {
        "distributed": True,
        "leaks": leaks,
        "edges": graph.num_edges,
        "num_nodes": graph.num_nodes,
        "node_bounds": cuts,
        "large_bounds": np.searchsorted(large, cuts).tolist(),
        "rest_bounds": np.searchsorted(rest, cuts).tolist(),
        "volume": volume,
        "wanted": wanted,
        "extra": extra,
        "counts": {
            "num_components": components,
            "num_isolated": components - zeros,
            "num_zeros": zeros,
        },
        "rest": _solve_rest(encoder, graph, rest, request.seed, folder),
    }


def _eigenpairs_to_find(encoder: LaplacianEigenmaps, zeros: int) -> tuple[int, int]:
    """Wanted and extra eigenpairs; none where null vectors fill all columns."""
    dimensions, taken = int(encoder.dimensions), 0
    if encoder.choice("null_vectors") == "keep":
        taken = zeros if encoder.components == "merge" else 1
    return (dimensions - taken, 1) if taken < dimensions else (0, 0)


def component_ref(
    request: EncodeRequest, folder: Path, *, connected: bool
) -> ArtifactRef[GraphStore]:
    """Where tasks find the component; a connected graph is not copied if it is kept already."""
    if connected and is_kept(request):
        return request.message_graph
    return ArtifactRef.of_folder(folder / "component", GraphStore)


def save_component(graph: GraphStore, nodes: npt.NDArray[np.int64], folder: Path) -> None:
    """Write one or more whole components as a graph; memory does not grow with the edges.

    Args:
        graph: All of it.
        nodes: Of the components, ascending; they get the numbers 0, 1, ...
        folder: Gets the arrays.
    """
    number = np.full(graph.num_nodes, -1, dtype=graph.indices.dtype)
    number[nodes] = np.arange(len(nodes))
    indptr = np.concatenate([[0], np.cumsum(graph.degrees[nodes])]).astype(np.int64)
    write_array(folder / "indptr.npy", indptr)
    shape = (int(indptr[-1]),)
    indices = new_mapped_array(folder / "indices.npy", shape, graph.indices.dtype)
    weights = None
    if graph.weights is not None:
        weights = new_mapped_array(folder / "weights.npy", shape, graph.weights.dtype)
    first = 0
    for chunk in entry_chunks(graph):
        inside = number[chunk.rows] >= 0
        last = first + int(np.count_nonzero(inside))
        indices[first:last] = number[graph.indices[chunk.part][inside]]
        if weights is not None and graph.weights is not None:
            weights[first:last] = graph.weights[chunk.part][inside]
        first = last


def _solve_rest(
    encoder: LaplacianEigenmaps,
    graph: GraphStore,
    nodes: npt.NDArray[np.int64],
    seed: int,
    folder: Path,
) -> RestResult:
    """Eigenvectors of the smaller components, scaled only where each has its own scale."""
    if encoder.components == "largest" or len(nodes) == 0:
        return {"eigenvalues": [], "residuals": [], "solvers": [], "applications": 0}
    save_component(graph, nodes, folder / "rest")
    spectrum = encoder.find_spectrum(GraphStore.open(folder / "rest"), seed=seed)
    remove(folder / "rest")
    shared = encoder.components == "per_component"
    vectors = spectrum.scaled(encoder.choice("scale")) if shared else spectrum.vectors
    write_array(folder / "rest-vectors.npy", vectors)
    return {
        "eigenvalues": spectrum.eigenvalues.tolist(),
        "residuals": spectrum.residuals.tolist(),
        "solvers": list(spectrum.solvers),
        "applications": spectrum.applications,
    }
