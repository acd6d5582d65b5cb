"""What baselines share that read features and edges, and no distance between positions."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from torch import Tensor

from peg_core.layers.message_graph import MessageGraph
from peg_core.models.link_predictor import NO_DROPOUT, LinkPredictor, State
from peg_core.models.model_spec import ModelSpec

# Attention heads, side by side in an embedding.
ATTENTION_HEADS = 4


class FeatureModel(LinkPredictor):
    """A stack of layers of one kind, rectified between them.

    Positions reach neither edges nor head; where `features.kind` is positional they are columns
    of the features. All edges are alike to it: relations and directions of messages are not read.
    """

    reads_geometry = False

    @staticmethod
    def preset_dropout(spec: ModelSpec) -> tuple[float, float, float]:
        del spec
        return NO_DROPOUT

    @staticmethod
    def preset_head(spec: ModelSpec) -> str:
        """The inner product with a scale and an offset: without these it learns far worse."""
        del spec
        return "inner_product"

    def embed_layer(self, layer: int, state: State, messages: MessageGraph) -> Tensor:
        sources, targets = self.ends(layer, state, messages)
        convolution: Any = self.layers[layer]
        return self.activate(layer, convolution.pass_messages(sources, targets, messages))

    def activate(self, layer: int, out: Tensor) -> Tensor:
        """Rectified between layers, whatever the preset."""
        if layer < len(self.layers) - 1:
            return self.rectify(out)
        return super().activate(layer, out)

    def rectify(self, out: Tensor) -> Tensor:
        """ReLU."""
        return out.relu()


def layer_widths(spec: ModelSpec) -> list[tuple[int, int]]:
    """What each layer reads and returns."""
    return list(pairwise([spec.in_channels] + [spec.hidden] * spec.layers))


def attention_heads(spec: ModelSpec) -> int:
    """Four, or as many of them as an embedding can be shared among."""
    return math.gcd(spec.hidden, ATTENTION_HEADS)
