"""What a layer sees of a graph: rows of edges, their weights, what the gate measures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from peg_core.graph.graph_store import GraphStore
from peg_core.layers.edge_rule import EdgeRule
from peg_core.layers.gated_sum import ReverseRows, reverse_rows
from peg_core.layers.placement import placed

Positions = Sequence[npt.NDArray[np.floating[Any]]]
IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class MessageGraph:
    """Edges into some targets, row by row, and the targets' self-loops.

    Weights use the degrees of the *whole* graph, also when only a range of rows or
    a sample of the edges is taken. Where not stated otherwise the targets are the
    first of the sources.

    Args:
        indptr: [num_targets + 1], the edges of each target.
        sources: [num_edges], which row of the state is sent.
        weights: [num_edges].
        measures: [num_edges, num_encodings + num_columns]: distances, then the relations and
            directions of the edge, see :meth:`GraphStore.columns`.
        loop_weights: [num_targets].
        loop_measures: [num_targets, num_encodings + num_columns]; a loop has no relation.
        num_sources: Rows of the state.
        source_nodes: [num_sources] the nodes behind the rows; empty where all nodes are.
    """

    indptr: Tensor
    sources: Tensor
    weights: Tensor
    measures: Tensor
    loop_weights: Tensor
    loop_measures: Tensor
    num_sources: int
    source_nodes: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def num_targets(self) -> int:
        return len(self.indptr) - 1

    @cached_property
    def targets(self) -> Tensor:
        """The target of every edge, [num_edges]."""
        rows = torch.arange(self.num_targets, device=self.indptr.device)
        # with its length known beforehand, no device is waited for
        return torch.repeat_interleave(rows, self.indptr.diff(), output_size=len(self.sources))

    @property
    def edge_index(self) -> Tensor:
        """[2, num_edges] (source, target), as PyG writes edges."""
        return torch.stack([self.sources.long(), self.targets])

    @cached_property
    def reverse(self) -> ReverseRows:
        """The edges by their source, for gradients."""
        return reverse_rows(self.indptr, self.sources, self.num_sources)

    def first_targets(self, count: int, num_sources: int) -> MessageGraph:
        """The rows of the first targets; they must read none but the first sources."""
        edges = int(self.indptr[count])
        return MessageGraph(
            self.indptr[: count + 1],
            self.sources[:edges],
            self.weights[:edges],
            self.measures[:edges],
            self.loop_weights[:count],
            self.loop_measures[:count],
            num_sources,
        )

    def rows(self, start: int, stop: int) -> MessageGraph:
        """A range of the targets of a whole graph; ``source_nodes`` are the distinct sources."""
        first, last = (int(self.indptr[row]) for row in (start, stop))
        nodes, local = np.unique(self.sources[first:last].numpy(), return_inverse=True)
        return MessageGraph(
            self.indptr[start : stop + 1] - first,
            torch.from_numpy(local),
            self.weights[first:last],
            self.measures[first:last],
            self.loop_weights[start:stop],
            self.loop_measures[start:stop],
            len(nodes),
            nodes.astype(np.int64),
        )

    def kept(self, keep: npt.NDArray[np.bool_], graph: GraphStore, rule: EdgeRule) -> MessageGraph:
        """Some edges of a whole graph, weighed by the degrees that they leave.

        Args:
            keep: [num_edges], the same for both directions of an edge.
            graph: What they leave.
            rule: How edges are weighed.
        """
        degrees, indices = graph.weighted_degrees, np.asarray(graph.indices)
        target = np.repeat(np.arange(graph.num_nodes), graph.degrees)
        weights = rule.edge_weights(graph.weights, degrees[target], degrees[indices])
        chosen = torch.from_numpy(keep)
        return replace(
            self,
            indptr=torch.from_numpy(np.asarray(graph.indptr, dtype=np.int64)),
            sources=self.sources[chosen],
            weights=torch.from_numpy(weights),
            measures=self.measures[chosen],
            loop_weights=torch.from_numpy(rule.loop_weights(degrees)),
        )

    def to(self, device: torch.device) -> MessageGraph:
        """The same on a device; itself where it is there already."""
        if self.indptr.device == device:
            return self
        return self.each(lambda values: placed(values, device))

    def each(self, change: Callable[[Tensor], Tensor]) -> MessageGraph:
        """The same edges with every tensor changed, such as pinned."""
        changed: dict[str, Any] = {name: change(getattr(self, name)) for name in TENSORS}
        return replace(self, **changed)

    @classmethod
    def of_graph(
        cls, graph: GraphStore, positions: Positions, rule: EdgeRule | None = None
    ) -> MessageGraph:
        """The whole graph."""
        degrees = graph.weighted_degrees
        return cls._of_rows(
            graph, 0, graph.num_nodes, positions, degrees, rule or EdgeRule(), graph.num_nodes
        )

    @classmethod
    def of_rows(
        cls,
        graph: GraphStore,
        start: int,
        stop: int,
        positions: Positions,
        degrees: npt.NDArray[np.floating[Any]],
        rule: EdgeRule | None = None,
    ) -> MessageGraph:
        """A range of rows; ``degrees`` are the weighted degrees of all nodes.

        ``source_nodes`` are the distinct sources; the targets are not among them.
        """
        rows = cls._of_rows(graph, start, stop, positions, degrees, rule or EdgeRule(), 0)
        nodes, local = np.unique(rows.sources.numpy(), return_inverse=True)
        return cls(
            rows.indptr,
            torch.from_numpy(local),
            rows.weights,
            rows.measures,
            rows.loop_weights,
            rows.loop_measures,
            len(nodes),
            nodes.astype(np.int64),
        )

    @classmethod
    def _of_rows(
        cls,
        graph: GraphStore,
        start: int,
        stop: int,
        positions: Positions,
        degrees: npt.NDArray[np.floating[Any]],
        rule: EdgeRule,
        num_sources: int,
    ) -> MessageGraph:
        part = graph.csr_slice(start, stop)
        indptr = np.asarray(part.indptr, dtype=np.int64)
        source = np.asarray(part.indices)
        target = np.repeat(np.arange(start, stop, dtype=source.dtype), np.diff(indptr))
        weights = rule.edge_weights(part.weights, degrees[target], degrees[source])
        entries = slice(int(graph.indptr[start]), int(graph.indptr[stop]))
        measures = [rule.edge_measures(z, source, target) for z in positions]
        loops = [rule.loop_measures(z[start:stop]) for z in positions]
        columns = graph.columns(entries)
        return cls(
            torch.from_numpy(indptr - indptr[0]),
            torch.from_numpy(source.astype(np.int64)),
            torch.from_numpy(weights),
            gate_inputs(measures, columns),
            torch.from_numpy(rule.loop_weights(degrees[start:stop])),
            gate_inputs(loops, None, padding=graph.num_columns),
            num_sources,
        )


def gate_inputs(
    measures: Sequence[FloatArray], columns: FloatArray | None, *, padding: int = 0
) -> Tensor:
    """Measures [num_edges] each, then columns [num_edges, num_columns] or as many zeros."""
    parts = [np.stack(measures, axis=1)]
    if columns is not None:
        parts.append(columns)
    if padding:
        parts.append(np.zeros((len(parts[0]), padding), dtype=np.float32))
    return torch.from_numpy(np.concatenate(parts, axis=1) if len(parts) > 1 else parts[0])


TENSORS = ("indptr", "sources", "weights", "measures", "loop_weights", "loop_measures")
