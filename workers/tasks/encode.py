"""Encodings as Ray tasks: one graph, one encoding, one task."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from peg_core.artifacts.positions import Positions
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
from peg_core.graph.graph_outline import GraphOutline
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.ids.graph_ids import GraphIds
from peg_core.splits.fold_graph import write_fold_graph
from peg_core.splits.leak_check import require_no_leaks
from peg_core.splits.split_store import NO_FOLD, TRAIN_GRAPH, SplitStore
from workers.artifact_ref import ArtifactRef


class EncodeResult(TypedDict):
    """What is told of an encoding: the encoder's report, links that leaked, edges encoded."""

    report: dict[str, Any]
    leaks: dict[str, int]
    edges: int


@dataclass(frozen=True)
class WarmStart:
    """An earlier encoding to start from.

    Args:
        positions: It may have kept no eigenvectors.
        graph: Its graph, with the ids of the nodes.
        trained_nodes: Nodes of the graph that the model was trained on.
    """

    positions: ArtifactRef[Positions]
    graph: ArtifactRef[GraphStore]
    trained_nodes: int


@dataclass(frozen=True)
class EncodeRequest:
    """Which encoding of which graph.

    Args:
        kind, parameters, seed: The encoder.
        out: Where the positions go.
        encoding: Number of the encoding in there.
        graph: A graph; or, with ``split``, None.
        split: A split; ``fold`` says which training fold is left out.
        fold_graph: The training graph without it, where it is on disk.
        keep_vectors: Keep eigenvectors beside it, for a later start.
        start: An earlier encoding to start from; with ``graph``.
    """

    kind: str
    parameters: dict[str, Any]
    seed: int
    out: ArtifactRef[Positions]
    encoding: int = 0
    graph: ArtifactRef[GraphStore] | None = None
    split: ArtifactRef[SplitStore] | None = None
    fold: int = NO_FOLD
    fold_graph: ArtifactRef[GraphStore] | None = None
    keep_vectors: bool = False
    start: WarmStart | None = None

    @property
    def name(self) -> str:
        """Unique in its stage."""
        return Positions.name(self.encoding, self.fold)

    @property
    def file(self) -> Path:
        """The array to write."""
        return self.out.open().file(self.encoding, self.fold)

    @property
    def message_graph(self) -> ArtifactRef[GraphStore]:
        """A graph on disk with these nodes: the one to encode, or the whole training graph."""
        if self.fold_graph is not None:
            return self.fold_graph
        if self.split is not None:
            return self.split.at(GraphStore, TRAIN_GRAPH)
        assert self.graph is not None
        return self.graph


def fold_graph_task(
    split: ArtifactRef[SplitStore], fold: int, out: ArtifactRef[GraphStore]
) -> dict[str, Any]:
    """Write the training graph without a fold, for all its encodings."""
    write_fold_graph(split.open(), fold, out.folder)
    return {}


def encode_task(request: EncodeRequest) -> EncodeResult:
    """Encode a graph; a training graph is first shown to hold none of the held-out links."""
    graph, leaks = open_graph(request)
    encoder = ENCODERS[request.kind](**request.parameters)
    out = request.out.open()
    state = out.state_folder(request.encoding, request.fold)
    if isinstance(encoder, LaplacianEigenmaps) and (request.keep_vectors or request.start):
        encoding = _encode_spectrum(encoder, graph, request)
    elif isinstance(encoder, ResumableEncoder):
        encoding = encoder.solve(graph, seed=request.seed, checkpoint=state)
    else:
        encoding = encoder.solve(graph, seed=request.seed)
    out.write(encoding.positions, request.encoding, request.fold)
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
        write_array(request.out.open().vectors_file(request.encoding), vectors_to_keep(spectrum))
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
    if request.start is None:
        return None
    file = request.start.positions.open().vectors_file(request.encoding)
    if not file.exists():
        return None
    assert request.graph is not None
    index = request.graph.at(GraphIds).open().find(request.start.graph.at(GraphIds).open())
    earlier = np.load(file, mmap_mode="r")
    vectors = np.zeros((graph.num_nodes, earlier.shape[1]), dtype=np.float32)
    known = np.zeros(graph.num_nodes, dtype=np.bool_)
    vectors[index[index >= 0]] = earlier[index >= 0]
    known[index[index >= 0]] = True
    return start_vectors(graph, vectors, known)


def _tell_start(given: bool, used: bool, solvers: tuple[str, ...]) -> str:
    if not given:
        return "not used: the earlier encoding kept no eigenvectors"
    if used:
        return "used"
    if solvers == ("dense",):
        return "not used: the graph is small enough for a dense solver"
    return "not used: the spectrum has no gap after the last dimension, or another solver was set"


def num_nodes(request: EncodeRequest) -> int:
    """Nodes of the graph to encode; folds have those of the whole graph."""
    return request.message_graph.at(GraphOutline).open().num_nodes


def open_graph(request: EncodeRequest) -> tuple[GraphStore, dict[str, int]]:
    """The graph to encode, and counts that prove it free of held-out links."""
    if request.split is None:
        return request.message_graph.open(), {}
    split = request.split.open()
    kept = request.fold_graph
    graph = split.graph_without(request.fold) if kept is None else kept.open()
    found_in = f"the graph encoded for {request.file}"
    return graph, require_no_leaks(graph, split.hidden_links(request.fold), found_in=found_in)
