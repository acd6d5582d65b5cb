"""PEG: two channels, features that are transformed and positions that are measured."""

from __future__ import annotations

from itertools import pairwise
from typing import cast

from torch import Tensor, nn

from peg_core.layers.message_graph import MessageGraph
from peg_core.layers.peg_conv import PEGConv
from peg_core.models.link_predictor import LinkPredictor, State, preset_rule
from peg_core.models.model_spec import ModelSpec


class PEG(LinkPredictor):
    """A stack of PEG layers with a rotation-invariant head.

    Preset ``best``: gate on the distance, ReLU between layers, linear residual,
    dropout, structural head. Preset ``faithful``: the authors' code (no psi, gate on the
    squared distance, linear head).
    """

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        self.rule = preset_rule(spec)
        widths = [spec.in_channels] + [spec.hidden] * spec.layers
        layers = [
            PEGConv(
                before,
                after,
                num_measures=spec.num_encodings,
                edge_dim=spec.relation_columns,
                residual=spec.preset == "best",
                measure=self.rule.measure,
            )
            for before, after in pairwise(widths)
        ]
        if spec.preset == "faithful":
            for layer in layers:
                nn.init.xavier_uniform_(layer.linear.weight)  # as PyG's layers start
        self.layers = nn.ModuleList(layers)

    def embed_layer(self, layer: int, state: State, messages: MessageGraph) -> Tensor:
        sources, targets = self.ends(layer, state, messages)
        convolution = cast(PEGConv, self.layers[layer])
        return self.activate(layer, convolution.pass_messages(sources, targets, messages))
