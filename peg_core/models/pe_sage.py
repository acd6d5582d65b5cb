"""PE-SAGE: GraphSAGE whose neighbours are weighed by their distance."""

from __future__ import annotations

from itertools import pairwise
from typing import cast

from torch import Tensor, nn

from peg_core.layers.message_graph import MessageGraph
from peg_core.layers.pe_sage_conv import PESAGEConv
from peg_core.models.link_predictor import LinkPredictor, State, preset_rule
from peg_core.models.model_spec import ModelSpec


class PESAGE(LinkPredictor):
    """A stack of PE-SAGE layers with a rotation-invariant head; presets as in PEG."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        self.rule = preset_rule(spec, "mean")
        widths = [spec.in_channels] + [spec.hidden] * spec.layers
        self.layers = nn.ModuleList(
            PESAGEConv(
                before,
                after,
                num_measures=spec.num_encodings,
                edge_dim=spec.relation_columns,
                measure=self.rule.measure,
            )
            for before, after in pairwise(widths)
        )

    def embed_layer(self, layer: int, state: State, messages: MessageGraph) -> Tensor:
        sources, targets = self.ends(layer, state, messages)
        convolution = cast(PESAGEConv, self.layers[layer])
        return self.activate(layer, convolution.pass_messages(sources, targets, messages))
