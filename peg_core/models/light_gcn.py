"""LightGCN: free parameters, spread over the edges and averaged."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from peg_core.errors import ConfigError
from peg_core.layers.light_gcn_conv import LightGCNConv
from peg_core.layers.message_graph import MessageGraph
from peg_core.models.link_predictor import LinkPredictor, State, preset_rule
from peg_core.models.model_spec import ModelSpec


class LightGCN(LinkPredictor):
    """The mean of a node's features and of all layers' outputs, without weights or rectifiers.

    `LightGCN <https://arxiv.org/abs/2002.02126>`_, scored by an inner product; with ``gated``
    every layer multiplies its coefficients by PEG's gate on positions. Both presets are the same
    but for what the gate measures. A state holds the layer's output and the sum of all outputs so
    far side by side; the first one is the features alone, the last one the mean.
    """

    table_deviation = 0.1  # as its authors start

    def __init__(self, spec: ModelSpec) -> None:
        if spec.in_channels != spec.hidden:
            raise ConfigError(
                f"light_gcn does not change the width of features: they have {spec.in_channels} "
                f"columns, `model.hidden` is {spec.hidden}; set it to {spec.in_channels}, or use "
                f"`features: {{kind: learned, dimensions: {spec.hidden}}}`"
            )
        super().__init__(spec)
        self.rule = preset_rule(spec, "neighbours")
        self.layers = nn.ModuleList(
            LightGCNConv(
                num_measures=spec.num_encodings,
                edge_dim=spec.relation_columns,
                gated=spec.gated,
                measure=self.rule.measure,
            )
            for _ in range(spec.layers)
        )

    @staticmethod
    def preset_head(spec: ModelSpec) -> str:
        del spec
        return "inner_product"

    def state_width(self, layer: int) -> int:
        return self.spec.hidden if layer == len(self.layers) - 1 else 2 * self.spec.hidden

    def embed_layer(self, layer: int, state: State, messages: MessageGraph) -> Tensor:
        sources, targets = self.ends(layer, state, messages)
        width = self.spec.hidden
        convolution = cast(LightGCNConv, self.layers[layer])
        out = convolution.pass_messages(sources[:, :width], messages)
        total = out + targets[:, -width:]
        if layer == len(self.layers) - 1:
            return self.activate(layer, total / (len(self.layers) + 1))
        return torch.cat([out, total], dim=-1)

    def ends(self, layer: int, state: State, messages: MessageGraph) -> tuple[Tensor, Tensor]:
        """As given: what is dropped from a state would be missing in the mean."""
        del layer
        return state if isinstance(state, tuple) else (state, state[: messages.num_targets])
