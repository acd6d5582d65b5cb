"""What every model offers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from peg_core.models.message_graph import MessageGraph


@dataclass(frozen=True)
class ModelSpec:
    """All that is needed to build a model before its weights are loaded."""

    kind: str
    preset: str
    in_channels: int
    num_encodings: int
    hidden: int = 128
    layers: int = 2


class LinkPredictor(nn.Module):
    """Embeds nodes layer by layer, then turns pairs into logits.

    Subclasses fill ``layers`` and ``head`` and say which length an edge has;
    ``version`` goes up whenever training the same data gives another model.
    """

    version: ClassVar[int] = 2
    squared_distances: bool
    layers: nn.ModuleList
    head: nn.Module

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.spec = spec

    def first_state(self, x: Tensor, positions: Sequence[Tensor]) -> Tensor:
        """What the first layer reads of nodes: their features, and for some models more.

        Args:
            x: [num_nodes, in_channels].
            positions: [num_nodes, dimensions] for every encoding.
        """
        del positions
        return x

    def state_width(self, layer: int) -> int:
        """Columns of what ``embed_layer(layer, ...)`` returns; the last one's is the embedding."""
        del layer
        return self.spec.hidden

    def forward(self, state: Tensor, messages: MessageGraph) -> Tensor:
        """Embeddings of all nodes from their first state, [num_nodes, hidden]."""
        for layer in range(len(self.layers)):
            state = self.embed_layer(layer, state, messages)
        return state

    @abstractmethod
    def embed_layer(
        self, layer: int, state: Tensor | tuple[Tensor, Tensor], messages: MessageGraph
    ) -> Tensor:
        """One layer for the targets of ``messages``, [num_targets, state_width(layer)].

        Args:
            layer: Its number.
            state: Of all nodes, or of (sources, targets) where those differ.
            messages: The edges.
        """

    def decode(self, first: Tensor, second: Tensor, geometry: Tensor, structure: Tensor) -> Tensor:
        """Logits of pairs, [num_pairs]; symmetric in the two ends."""
        logits: Tensor = self.head(first, second, geometry, structure)
        return logits
