"""A graph as a model sees it during training: messages, features, positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from peg_core.graph.components import connected_components
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.node_features import NodeFeatures, input_features
from peg_core.kernels.pair_structure import NUM_STRUCTURAL
from peg_core.layers.message_graph import MessageGraph, Positions
from peg_core.layers.sparse_linear import sparse_tensor
from peg_core.models.link_predictor import LinkPredictor
from peg_core.models.pair_geometry import pair_geometry
from peg_core.models.structural_features import training_structure
from peg_core.splits.entry_chunk import find_entries
from peg_core.training.link_schedule import Supervision
from peg_core.training.training_step import TrainingStep

IntArray = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True)
class GraphView:
    """Everything comes from one graph: what is not in it cannot reach the model.

    Args:
        graph: The edges that may be seen.
        positions: [num_nodes, dimensions] for every encoding of that same graph.
        features: What the model reads of nodes.
        components: The component of every node, [num_nodes].
        model: Says what it asks of edges and pairs; its weights are not read.
    """

    graph: GraphStore
    positions: Positions
    features: NodeFeatures
    components: npt.NDArray[np.int32]
    model: LinkPredictor

    @classmethod
    def of(
        cls,
        graph: GraphStore,
        positions: Positions,
        features: NodeFeatures,
        model: LinkPredictor,
    ) -> Self:
        return cls(graph, positions, features, connected_components(graph)[1], model)

    def pair_inputs(self, supervision: Supervision) -> tuple[Tensor, Tensor]:
        """Geometry [num_pairs, 3 * num_encodings] and structure [num_pairs, 6 or 15] of pairs."""
        source, target = supervision.source, supervision.target
        read = self.positions if self.model.reads_geometry else []
        geometry = pair_geometry(read, source, target)
        if self.model.head.reads_structure:
            pairs = self.graph, source, target, self.components
            structure = training_structure(*pairs, num_links=supervision.num_known)
        else:
            structure = np.zeros((len(source), NUM_STRUCTURAL), dtype=np.float32)
        return torch.from_numpy(geometry), torch.from_numpy(structure)

    def node_inputs(
        self, nodes: npt.NDArray[np.int64] | None = None
    ) -> tuple[Tensor, Sequence[Tensor]]:
        """Features and, where the model reads them, positions of some or all nodes.

        Features that are mostly zeros come in compressed rows where the model reads them so.
        """
        chosen = slice(None) if nodes is None else nodes
        sparse = self.features.sparse if self.model.reads_sparse_rows else None
        if sparse is not None:
            x = sparse_tensor(sparse if nodes is None else sparse[nodes])
        else:
            x = torch.from_numpy(input_features(self.features, self.graph, self.positions, chosen))
        positions = self.positions if self.model.reads_positions else []
        return x, [_rows(z, chosen) for z in positions]


class Whole(NamedTuple):
    """Features, positions and messages of all nodes."""

    x: Tensor
    positions: Sequence[Tensor]
    messages: MessageGraph


class FullView(GraphView):
    """A view that is small enough to be embedded whole in every step."""

    @cached_property
    def whole(self) -> Whole:
        """What a model reads of all nodes, made once."""
        messages = self.model.whole_messages(self.graph, self.positions)
        return Whole(*self.node_inputs(), messages)

    def without(self, source: IntArray, target: IntArray) -> FullView:
        """The same view less some links: in messages, degrees, counts and components.

        Positions stay as they are: those of the graph with the links.
        """
        self.model.require_local()
        keep = np.ones(len(self.graph.indices), dtype=bool)
        for ends in ((source, target), (target, source)):
            keep[find_entries(self.graph, *ends)] = False
        graph = self.graph.filter_entries(keep)
        components = self.components
        if self.model.head.reads_structure:
            components = connected_components(graph)[1]
        view = FullView(graph, self.positions, self.features, components, self.model)
        x, positions, messages = self.whole
        if self.features.kind == "degree":
            x, _ = view.node_inputs()
        # a cached property is a plain attribute once it has a value
        view.__dict__["whole"] = Whole(x, positions, messages.kept(keep, graph, self.model.rule))
        return view

    def step(self, supervision: Supervision, whole: Whole | None = None) -> TrainingStep:
        """The whole graph and the pairs of a step.

        Args:
            whole: Of this view, where it is on a device already.
        """
        x, positions, messages = whole or self.whole
        source, target = supervision.source, supervision.target
        geometry, structure = self.pair_inputs(supervision)
        pairs = torch.from_numpy(np.stack([source, target]))
        partners = supervision.partners
        return TrainingStep(
            supervision.number, x, positions, None, messages, pairs, geometry, structure,
            supervision.num_links,
            None if partners is None else torch.from_numpy(partners),
            supervision.possible_partners,
        )  # fmt: skip


def _rows(values: npt.NDArray[Any], nodes: slice | IntArray) -> Tensor:
    return torch.from_numpy(np.array(values[nodes], dtype=np.float32))
