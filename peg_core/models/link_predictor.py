"""What every model offers."""

from __future__ import annotations

from abc import abstractmethod
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

    version: ClassVar[int] = 1
    squared_distances: bool
    layers: nn.ModuleList
    head: nn.Module

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.spec = spec

    def forward(self, x: Tensor, messages: MessageGraph) -> Tensor:
        """Embeddings of all nodes, [num_nodes, hidden]."""
        for layer in range(len(self.layers)):
            x = self.embed_layer(layer, x, messages)
        return x

    @abstractmethod
    def embed_layer(
        self, layer: int, x: Tensor | tuple[Tensor, Tensor], messages: MessageGraph
    ) -> Tensor:
        """One layer for the targets of ``messages``, [num_targets, hidden]."""

    def decode(self, first: Tensor, second: Tensor, geometry: Tensor, structure: Tensor) -> Tensor:
        """Logits of pairs, [num_pairs]; symmetric in the two ends."""
        logits: Tensor = self.head(first, second, geometry, structure)
        return logits
