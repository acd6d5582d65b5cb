"""What a model reads in one step of training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from peg_core.layers.message_graph import MessageGraph
from peg_core.layers.placement import placed


@dataclass(frozen=True)
class TrainingStep:
    """Nodes, edges and labelled pairs: links first, then non-links.

    Args:
        number: Counts the steps of a training; all random numbers of a step come from it.
        x: [num_nodes, in_channels].
        positions: [num_nodes, dimensions] for every encoding; empty where not read.
        nodes: [num_nodes] which nodes these are; None: all, in order.
        messages: One graph for all layers, or one for each.
        pairs: [2, num_pairs] rows among the nodes that the last layer embeds.
        geometry: [num_pairs, 3 * num_encodings].
        structure: [num_pairs, 6], or 15 where links are directed.
        num_links: The first pairs, which are links.
        partners: [num_partners] rows that every link is held against, in place of non-links.
        possible_partners: How many nodes these stand for.
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
    partners: Tensor | None = None
    possible_partners: int = 0

    @property
    def labels(self) -> Tensor:
        """1 for links, 0 for the others, [num_pairs]."""
        index = torch.arange(self.pairs.shape[1], device=self.pairs.device)
        return (index < self.num_links).float()

    def to(self, device: torch.device) -> TrainingStep:
        """The same step on a device; what is there already is not copied."""
        return self._each(lambda values: placed(values, device), lambda layer: layer.to(device))

    def pinned(self) -> TrainingStep:
        """The same step, with what is not on a GPU yet in memory that a GPU fetches by itself."""
        return self._each(_pinned, lambda layer: layer.each(_pinned))

    def _each(
        self,
        change: Callable[[Tensor], Tensor],
        change_messages: Callable[[MessageGraph], MessageGraph],
    ) -> TrainingStep:
        messages = self.messages
        return TrainingStep(
            self.number,
            change(self.x),
            [change(z) for z in self.positions],
            None if self.nodes is None else change(self.nodes),
            change_messages(messages)
            if isinstance(messages, MessageGraph)
            else [change_messages(layer) for layer in messages],
            change(self.pairs),
            change(self.geometry),
            change(self.structure),
            self.num_links,
            None if self.partners is None else change(self.partners),
            self.possible_partners,
        )


def _pinned(values: Tensor) -> Tensor:
    is_copied = values.device.type == "cpu" and values.layout == torch.strided
    return values.pin_memory() if is_copied else values
