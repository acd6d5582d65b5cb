"""A graph as a model sees it during training: messages, features, positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from peg_core.graph.components import connected_components
from peg_core.graph.graph_store import GraphStore
from peg_core.graph.node_features import NodeFeatures, input_features
from peg_core.models.message_graph import MessageGraph, Positions
from peg_core.models.pair_geometry import pair_geometry
from peg_core.models.structural_features import structural_features

IntArray = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True)
class GraphView:
    """Everything comes from one graph: what is not in it cannot reach the model.

    Args:
        graph: The edges that may be seen.
        positions: [num_nodes, dimensions] for every encoding of that same graph.
        features: [num_nodes, in_channels].
        messages: The same edges as the layers read them.
        components: The component of every node, [num_nodes].
    """

    graph: GraphStore
    positions: Sequence[Tensor]
    features: Tensor
    messages: MessageGraph
    components: npt.NDArray[np.int32]

    @classmethod
    def of(
        cls,
        graph: GraphStore,
        positions: Positions,
        features: NodeFeatures,
        *,
        squared: bool,
    ) -> GraphView:
        x = input_features(features, graph, positions)
        return cls(
            graph,
            [torch.from_numpy(np.array(z, dtype=np.float32)) for z in positions],
            torch.from_numpy(x),
            MessageGraph.of_graph(graph, positions, squared=squared),
            connected_components(graph)[1],
        )

    def pair_inputs(self, source: IntArray, target: IntArray) -> tuple[Tensor, Tensor]:
        """Geometry [num_pairs, 3 * num_encodings] and structure [num_pairs, 6] of pairs."""
        first, second = torch.from_numpy(source), torch.from_numpy(target)
        geometry = pair_geometry([(z[first], z[second]) for z in self.positions])
        structure = structural_features(self.graph, source, target, self.components)
        return geometry, torch.from_numpy(structure)
