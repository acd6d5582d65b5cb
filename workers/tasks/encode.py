"""Encodings as Ray tasks: one graph, one encoding, one task."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.atomic_file import write_array
from peg_core.encoding import ENCODERS, ResumableEncoder
from peg_core.encoding.encoder import Encoding
from peg_core.encoding.laplacian_eigenmaps import LaplacianEigenmaps
from peg_core.encoding.spectral.warm_start import (
    start_vectors,
    vectors_to_keep,
    was_refined,
    with_next_eigenvalue,
)
from peg_core.errors import ArtifactMismatch
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.node_ids import NodeIds
from peg_core.splits.leak_check import require_no_leaks
from peg_core.splits.split_store import NO_FOLD, SplitStore
from workers.task_map import Result


@dataclass(frozen=True)
class WarmStart:
    """An earlier encoding to start from.

    Args:
        vectors: Its eigenvectors, a file that may be missing.
        nodes: Its graph, with the ids of the nodes.
        trained_nodes: Nodes of the graph that the model was trained on.
    """

    vectors: Path
    nodes: Path
    trained_nodes: int


@dataclass(frozen=True)
class EncodeRequest:
    """Which encoding of which graph.

    Args:
        kind, parameters, seed: The encoder.
        graph: A graph store; or, with ``split``, None.
        split: A split; ``fold`` says which training fold is left out.
        out: The ``.npy`` file to write.
        keep_vectors: Keep eigenvectors beside it, for a later start.
        start: An earlier encoding to start from; with ``graph``.
    """

    kind: str
    parameters: dict[str, Any]
    seed: int
    out: Path
    graph: Path | None = None
    split: Path | None = None
    fold: int = NO_FOLD
    keep_vectors: bool = False
    start: WarmStart | None = None


def encode_task(request: EncodeRequest) -> Result:
    """Encode a graph; a training graph is first shown to hold none of the held-out links."""
    graph, leaks = open_graph(request)
    encoder = ENCODERS[request.kind](**request.parameters)
    state = request.out.with_name(f"{request.out.stem}-state")
    if isinstance(encoder, LaplacianEigenmaps) and (request.keep_vectors or request.start):
        encoding = _encode_spectrum(encoder, graph, request)
    elif isinstance(encoder, ResumableEncoder):
        encoding = encoder.solve(graph, seed=request.seed, checkpoint=state)
    else:
        encoding = encoder.solve(graph, seed=request.seed)
    write_array(request.out, encoding.positions)
    shutil.rmtree(state, ignore_errors=True)
    return {"report": encoding.report, "leaks": leaks, "edges": graph.num_edges}


def _encode_spectrum(
    encoder: LaplacianEigenmaps, graph: GraphStore, request: EncodeRequest
) -> Encoding:
    """Eigenmaps from an earlier start, where there is one; the eigenvectors are kept."""
    start = _earlier_vectors(graph, request)
    spectrum = encoder.find_spectrum(graph, seed=request.seed, start=start)
    used = was_refined(spectrum)
    if used:
        spectrum = with_next_eigenvalue(graph, spectrum, seed=request.seed)
    if request.keep_vectors:
        write_array(vectors_file(request.out), vectors_to_keep(spectrum))
    report = encoder.describe(spectrum)
    positions = encoder.place(spectrum)
    if request.start is not None:
        report["start"] = _tell_start(start is not None, used, spectrum.solvers)
        if encoder.choice("rows") == "plain" and encoder.choice("scale") != "sqrt_nodes":
            # unit columns shrink with the number of nodes, and with them the distances
            positions *= np.float32(np.sqrt(graph.num_nodes / request.start.trained_nodes))
    return Encoding(positions, report)


def _earlier_vectors(graph: GraphStore, request: EncodeRequest) -> npt.NDArray[np.float32] | None:
    """The kept eigenvectors in the order of this graph's nodes, new nodes from neighbours."""
    if request.start is None or not request.start.vectors.exists():
        return None
    assert request.graph is not None
    place = NodeIds.open(request.graph).lookup(NodeIds.open(request.start.nodes).values)
    earlier = np.load(request.start.vectors, mmap_mode="r")
    vectors = np.zeros((graph.num_nodes, earlier.shape[1]), dtype=np.float32)
    known = np.zeros(graph.num_nodes, dtype=np.bool_)
    vectors[place[place >= 0]] = earlier[place >= 0]
    known[place[place >= 0]] = True
    return start_vectors(graph, vectors, known)


def _tell_start(given: bool, used: bool, solvers: tuple[str, ...]) -> str:
    if not given:
        return "not used: the earlier encoding kept no eigenvectors"
    if used:
        return "used"
    if solvers == ("dense",):
        return "not used: the graph is small enough for a dense solver"
    return "not used: the spectrum has no gap after the last dimension, or another solver was set"


def vectors_file(positions: Path) -> Path:
    """Where the eigenvectors behind positions are kept."""
    return positions.with_name("vectors.npy")


def num_nodes(request: EncodeRequest) -> int:
    """Nodes of the graph to encode; folds have those of the whole graph."""
    folder = request.graph if request.split is None else request.split / "train_graph"
    assert folder is not None
    return GraphStore.open(folder).num_nodes


def open_graph(request: EncodeRequest) -> tuple[GraphStore, dict[str, int]]:
    """The graph to encode, and counts that prove it free of held-out links."""
    if request.split is None:
        assert request.graph is not None
        return GraphStore.open(request.graph), {}
    split = SplitStore(request.split)
    graph = split.graph_without(request.fold)
    place = f"the graph encoded for {request.out}"
    return graph, require_no_leaks(graph, split.hidden_links(request.fold), place=place)


def positions_file(folder: Path, encoding: int, fold: int = NO_FOLD) -> Path:
    """Where the positions of an encoding are kept."""
    name = "all" if fold == NO_FOLD else f"without-fold-{fold}"
    return folder / f"encoding-{encoding}" / f"{name}.npy"


def load_positions(
    folder: Path, num_encodings: int, *, num_nodes: int, fold: int = NO_FOLD
) -> list[npt.NDArray[np.float32]]:
    """The positions of every encoding, memory-mapped, checked to be of a graph of this size."""
    positions = []
    for encoding in range(num_encodings):
        file = positions_file(folder, encoding, fold)
        array = np.load(file, mmap_mode="r")
        if len(array) != num_nodes:
            raise ArtifactMismatch.of(
                what=f"the positions {file} and the graph",
                found=f"{len(array):,} nodes",
                needed=f"{num_nodes:,}",
            )
        positions.append(array)
    return positions
