"""E-GNN: features and positions both change from layer to layer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn

from peg_core.layers.edge_rule import EdgeRule
from peg_core.layers.egnn_conv import EGNNConv
from peg_core.layers.message_graph import MessageGraph
from peg_core.models.link_predictor import LinkPredictor, State
from peg_core.models.model_spec import ModelSpec


class EGNN(LinkPredictor):
    """The more general layer of the paper's appendix F, with PEG's head.

    A state holds features and positions side by side; the last layer's positions
    are not needed and left out. The gate setting has no meaning here.
    """

    reads_positions = True

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        if len(spec.encoding_widths) != spec.num_encodings:
            raise ValueError(
                f"encoding_widths is {spec.encoding_widths!r}, needed is the width of each of "
                f"the {spec.num_encodings} encodings"
            )
        self.rule = EdgeRule("squared", "mean")
        widths = [spec.in_channels] + [spec.hidden] * spec.layers
        self.layers = nn.ModuleList(
            EGNNConv(
                before,
                after,
                num_encodings=spec.num_encodings,
                moves=layer < spec.layers - 1,
                edge_dim=spec.relation_columns,
            )
            for layer, (before, after) in enumerate(pairwise(widths))
        )

    def first_state(
        self, x: Tensor, positions: Sequence[Tensor], nodes: Tensor | None = None
    ) -> Tensor:
        return torch.cat([self.features(x, nodes), *positions], dim=-1)

    def state_width(self, layer: int) -> int:
        last = layer == len(self.layers) - 1
        return self.spec.hidden + (0 if last else sum(self.spec.encoding_widths))

    def embed_layer(self, layer: int, state: State, messages: MessageGraph) -> Tensor:
        together = state[0] if isinstance(state, tuple) else state
        apart = state[1] if isinstance(state, tuple) else state[: messages.num_targets]
        width = together.shape[1] - sum(self.spec.encoding_widths)
        sizes = [width, *self.spec.encoding_widths]
        x, *source_positions = torch.split(together, sizes, dim=-1)
        own, *target_positions = torch.split(apart, sizes, dim=-1)
        ends: State = (x, own) if isinstance(state, tuple) else x
        sources, targets = self.ends(layer, ends, messages)
        out, moved = cast(EGNNConv, self.layers[layer]).pass_messages(
            sources, targets, source_positions, target_positions, messages
        )
        out = self.activate(layer, out)
        return out if layer == len(self.layers) - 1 else torch.cat([out, *moved], dim=-1)
