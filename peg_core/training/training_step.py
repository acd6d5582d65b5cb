"""What a model reads in one step of training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from peg_core.layers.message_graph import MessageGraph


@dataclass(frozen=True)
class TrainingStep:
    """Nodes, edges and labelled pairs: links first, then non-links.

    Args:
        number: Counts the steps of a training; all random numbers of a step come from it.
        x: [num_nodes, in_channels].
        positions: [num_nodes, dimensions] for every encoding; empty where not read.
        nodes: [num_nodes] which nodes these are; None: all, in order.
        messages: One graph for all layers, or one for each.
        pairs: [2, num_pairs] places among the nodes that the last layer embeds.
        geometry: [num_pairs, 3 * num_encodings].
        structure: [num_pairs, 6].
        num_links: The first pairs, which are links.
    """

    number: int
    x: Tensor
    positions: Sequence[Tensor]
    nodes: Tensor | None
    messages: MessageGraph | Sequence[MessageGraph]
    pairs: Tensor
    geometry: Tensor
    structure: Tensor
    num_links: int

    @property
    def labels(self) -> Tensor:
        """1 for links, 0 for the others, [num_pairs]."""
        place = torch.arange(self.pairs.shape[1], device=self.pairs.device)
        return (place < self.num_links).float()

    def to(self, device: torch.device) -> TrainingStep:
        """The same step on a device."""
        if self.x.device == device:
            return self
        messages = (
            self.messages.to(device)
            if isinstance(self.messages, MessageGraph)
            else [layer.to(device) for layer in self.messages]
        )
        return TrainingStep(
            self.number,
            self.x.to(device, non_blocking=True),
            [z.to(device, non_blocking=True) for z in self.positions],
            None if self.nodes is None else self.nodes.to(device, non_blocking=True),
            messages,
            self.pairs.to(device, non_blocking=True),
            self.geometry.to(device, non_blocking=True),
            self.structure.to(device, non_blocking=True),
            self.num_links,
        )
