"""Logits of many pairs from finished embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from peg_core.errors import ArtifactMismatch, PegError
from peg_core.graph.graph_store import GraphStore
from peg_core.inference.folded_branches import FoldedBranches, fold_branches
from peg_core.inference.folded_head import FoldedHead, fold_head
from peg_core.kernels.branch_kernel import branch_logits
from peg_core.kernels.directed_pair_kernel import directed_logits
from peg_core.kernels.hidden_layer import pack_columns, pack_values
from peg_core.kernels.node_rows import frozen_rows
from peg_core.kernels.pair_kernel import hidden_logits, linear_logits, stack_logits
from peg_core.kernels.thread_spans import map_spans, row_spans
from peg_core.layers.message_graph import Positions
from peg_core.metrics.stack import Stack
from peg_core.models.link_predictor import LinkPredictor
from peg_core.models.pair_geometry import pair_geometry
from peg_core.models.structural_features import structural_features

IntArray = npt.NDArray[np.integer[Any]]
FloatArray = npt.NDArray[np.float32]

# Pairs whose structure is held at once.
PAIRS_PER_STEP = 262_144


@dataclass(frozen=True)
class PairScorer:
    """A model's head over memory-mapped embeddings and positions.

    Heads that :func:`peg_core.inference.folded_head.fold_head` knows are applied by a kernel
    that reads the rows in place; others by torch, on gathered rows, in chunks.

    Args:
        model: In evaluation mode.
        graph: The graph that was embedded.
        embeddings: [num_nodes, hidden], float32 or float16.
        positions: [num_nodes, dimensions] for every encoding.
        components: The component of every node, [num_nodes].
        stack: What the logits are made of beside the head's; None: of those alone.
    """

    model: LinkPredictor
    graph: GraphStore
    embeddings: npt.NDArray[np.floating[Any]]
    positions: Positions
    components: IntArray
    stack: Stack | None = None

    def __post_init__(self) -> None:
        for array in (self.embeddings, *self.positions, self.components):
            if len(array) != self.graph.num_nodes:
                raise ArtifactMismatch.of(
                    what="embeddings, positions or components and the graph",
                    found=f"{len(array):,} nodes",
                    needed=f"{self.graph.num_nodes:,}",
                )
        if self.model.spec.directed != self.graph.is_directed:
            kinds = {True: "directed", False: "undirected"}
            raise ArtifactMismatch.of(
                what="the model and the predicted relation of the graph",
                found=f"{kinds[self.graph.is_directed]} links",
                needed=f"{kinds[self.model.spec.directed]} ones, as the model was trained on",
            )

    @cached_property
    def cold_nodes(self) -> npt.NDArray[np.bool_] | None:
        """Which nodes have no edge, [num_nodes]; None where all have one."""
        cold: npt.NDArray[np.bool_] = self.graph.indptr[1:] == self.graph.indptr[:-1]
        return cold if cold.any() else None

    def logits(self, source: IntArray, target: IntArray, *, chunk: int = 65_536) -> FloatArray:
        """One logit a pair, [num_pairs]; with torch in chunks, so that memory stays flat."""
        source = self._checked(source)
        target = self._checked(target)
        out = np.empty(len(source), dtype=np.float32)
        if self._head is None and self._branches is None:
            for start in range(0, len(source), chunk):
                part = slice(start, start + chunk)
                out[part] = self._decode(source[part], target[part])
            return out

        for start in range(0, len(source), PAIRS_PER_STEP):
            part = slice(start, start + PAIRS_PER_STEP)
            self._score(source[part], target[part], out[part])
        return out

    def _score(self, source: IntArray, target: IntArray, out: FloatArray) -> None:
        """Logits by the kernel; pairs of a hub are found together, so many pairs are better."""
        kernel, rows, more = self._kernel
        structure = read = np.empty((len(source), 0), dtype=np.float32)
        if self._reads_structure or self.stack is not None:
            structure = structural_features(self.graph, source, target, self.components)
        if self._reads_structure:
            read = structure

        def score(span: slice) -> None:
            own = () if kernel is linear_logits else (read[span],)
            kernel(*rows, *own, *more, source[span], target[span], out[span])
            if self.stack is not None:
                stack_logits(structure[span], self.stack.weights, out[span])

        map_spans(score, row_spans(len(source)))

    @cached_property
    def _head(self) -> FoldedHead | None:
        hidden = self.embeddings.shape[1]
        head = fold_head(self.model.head, hidden=hidden, num_encodings=len(self.positions))
        return (
            head.with_hidden_layer()
            if head is not None and (head.directed or head.reads_structure)
            else head
        )

    @cached_property
    def _branches(self) -> FoldedBranches | None:
        return fold_branches(self.model.head)

    @property
    def _reads_structure(self) -> bool:
        return self._branches is not None or (self._head is not None and self._head.reads_structure)

    @cached_property
    def _kernel(self) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
        """A kernel, the rows that it reads, and what follows the structure of the pairs."""
        positions = tuple(frozen_rows(np.asarray(z, dtype=np.float32)) for z in self.positions)
        rows = (_kernel_rows(self.embeddings), positions)
        folded = self._branches
        if folded is not None:
            return (
                branch_logits,
                rows,
                (folded.branches, folded.width, folded.epsilon, folded.offset),
            )
        head = self._head
        assert head is not None
        reads_positions = head.reads_positions(self.embeddings.shape[1])
        weights: Any = head.inner[:, 0].copy()
        if not head.is_linear:
            weights = (pack_columns(head.inner), pack_values(head.bias), pack_values(head.outer))
        more = (reads_positions, weights, np.float32(head.offset))
        if head.is_linear:
            return linear_logits, rows, more
        return directed_logits if head.directed else hidden_logits, rows, more

    @torch.no_grad()
    def _decode(self, source: IntArray, target: IntArray) -> FloatArray:
        """The general way: gather the rows, let the model decide."""
        read = self.positions if self.model.reads_geometry else []
        geometry = pair_geometry(read, source, target)
        structure = structural_features(self.graph, source, target, self.components)
        logits = self.model.decode(
            _rows(self.embeddings, source),
            _rows(self.embeddings, target),
            torch.from_numpy(geometry),
            torch.from_numpy(structure),
        )
        out: FloatArray = logits.numpy()
        if self.stack is not None:
            stack_logits(structure, self.stack.weights, out)
        return out

    def _checked(self, nodes: IntArray) -> npt.NDArray[np.int64]:
        """Indices as the kernel reads them; it does not look: a wrong one would read anything."""
        if len(nodes) and (nodes.min() < 0 or nodes.max() >= self.graph.num_nodes):
            raise PegError(
                f"node indices must lie in 0 .. {self.graph.num_nodes - 1:,}, "
                f"found {int(nodes.min()):,} .. {int(nodes.max()):,}"
            )
        return np.ascontiguousarray(nodes, dtype=np.int64)


def probabilities(logits: FloatArray) -> FloatArray:
    """The logistic function."""
    return torch.from_numpy(logits).sigmoid().numpy()


def _rows(values: npt.NDArray[np.floating[Any]], nodes: IntArray) -> torch.Tensor:
    return torch.from_numpy(values[nodes].astype(np.float32, copy=False))


def _kernel_rows(embeddings: npt.NDArray[np.floating[Any]]) -> npt.NDArray[Any]:
    if embeddings.dtype == np.float16:
        return frozen_rows(np.asarray(embeddings).view(np.uint16))
    return frozen_rows(np.asarray(embeddings, dtype=np.float32))
