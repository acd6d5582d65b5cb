"""One layer of a model for a range of nodes, with all their neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from peg_core.errors import ArtifactMismatch
from peg_core.graph.graph_store import GraphStore
from peg_core.inference.folded_layer import FoldedLayer, fold_layer
from peg_core.kernels.layer_kernel import gated_sums
from peg_core.kernels.node_rows import frozen_rows
from peg_core.kernels.thread_spans import map_spans, row_spans
from peg_core.layers.message_graph import MessageGraph, Positions
from peg_core.models.link_predictor import LinkPredictor

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class LayerwiseEmbedding:
    """Embeds any range of nodes from the states of all; memory is that of a step.

    Layers that :func:`peg_core.inference.folded_layer.fold_layer` knows sum their neighbours
    in a kernel and are then multiplied once a node; others run as they are on a slice of the
    graph.

    Args:
        model: In evaluation mode.
        graph: The edges that carry messages.
        positions: [num_nodes, dimensions] for every encoding.
        memory_bytes: What the rows of one step may take.
    """

    model: LinkPredictor
    graph: GraphStore
    positions: Positions
    memory_bytes: int = 256 * 2**20

    def __post_init__(self) -> None:
        read = self.model.spec.relation_columns
        if read != self.graph.num_columns:
            raise ArtifactMismatch.of(
                what="the model and the relations of the graph",
                found=f"{self.graph.num_columns} columns of relations and directions",
                needed=f"{read}, as in the graph that the model was trained on",
            )

    def fill(self, layer: int, state: FloatArray, start: int, stop: int, out: Any) -> None:
        """Write ``out[start:stop]`` of one layer, step by step.

        Args:
            layer: Its number.
            state: What the layer reads of all nodes, [num_nodes, channels].
            start, stop: The range.
            out: [num_nodes, state_width(layer)].
        """
        for first, values in self.rows(layer, state, start, stop):
            out[first : first + len(values)] = values

    def rows(
        self, layer: int, state: FloatArray, start: int, stop: int
    ) -> Iterator[tuple[int, FloatArray]]:
        """The output of one layer for a range, step by step: a first row, and rows from there."""
        folded = fold_layer(self.model, layer, self._code_columns)
        widths = (state.shape[1], self.model.state_width(layer))
        rows = max(1, self.memory_bytes // (4 * sum(widths)))
        if folded is not None:
            for first in range(start, stop, rows):
                last = min(first + rows, stop)
                yield first, self._folded(folded, state, first, last)
            return
        for first, last in _steps(self.graph, start, stop, rows):
            yield first, self._general(layer, state, first, last)

    @cached_property
    def _degrees(self) -> npt.NDArray[np.floating[Any]]:
        return self.graph.weighted_degrees

    @cached_property
    def _whole(self) -> MessageGraph:
        return self.model.whole_messages(self.graph, self.positions)

    @cached_property
    def _code_columns(self) -> FloatArray | None:
        """What a gate reads of every code that an entry can have, [num_codes, num_columns]."""
        if not self.graph.num_columns or self.graph.relations is None:
            return None
        return self.graph.relations.columns(self.graph.relations.all_codes)

    @cached_property
    def _arguments(self) -> tuple[Any, ...]:
        """What the kernel reads beside states and gates."""
        weights = self.graph.weights
        nothing = np.zeros(0, dtype=np.float32)
        graph = (self.graph.indptr, self.graph.indices, nothing if weights is None else weights)
        roots = (1.0 / np.sqrt(1.0 + self._degrees)).astype(np.float32)
        positions = tuple(frozen_rows(np.asarray(z, dtype=np.float32)) for z in self.positions)
        codes = None if self._code_columns is None else frozen_rows(np.asarray(self.graph.codes))
        return tuple(map(frozen_rows, graph)), codes, roots, positions

    def _folded(self, folded: FoldedLayer, state: FloatArray, first: int, last: int) -> FloatArray:
        graph, codes, roots, positions = self._arguments
        rows = frozen_rows(np.asarray(state, dtype=np.float32))
        sums = np.empty((last - first, state.shape[1]), dtype=np.float32)

        def add(span: slice) -> None:
            gated_sums(
                first + span.start, first + span.stop, graph, codes, roots, rows, positions,
                folded.gate, folded.squared, sums[span],
            )  # fmt: skip

        map_spans(add, row_spans(last - first))
        out = sums @ folded.linear
        if folded.residual is not None:
            out += rows[first:last] @ folded.residual
        out += folded.bias
        return np.maximum(out, 0, out=out) if folded.relu else out

    @torch.no_grad()
    def _general(self, layer: int, state: FloatArray, first: int, last: int) -> FloatArray:
        if self.model.is_local:
            messages = MessageGraph.of_rows(
                self.graph, first, last, self.positions, self._degrees, self.model.rule
            )
        else:
            messages = self._whole.rows(first, last)
        nodes = (messages.source_nodes, np.arange(first, last))
        x = tuple(torch.from_numpy(np.asarray(state[part], np.float32)) for part in nodes)
        return self.model.embed_layer(layer, (x[0], x[1]), messages).numpy()


def _steps(graph: GraphStore, start: int, stop: int, edges: int) -> list[tuple[int, int]]:
    """Cut a range so that a step has about ``edges`` edges, at least one node."""
    work = graph.indptr[start : stop + 1] - graph.indptr[start] + np.arange(stop - start + 1)
    steps = []
    first = 0
    while first < stop - start:
        last = int(np.searchsorted(work, work[first] + edges, side="right")) - 1
        last = min(max(last, first + 1), stop - start)
        steps.append((start + first, start + last))
        first = last
    return steps
