"""PEG: two channels, features that are transformed and positions that are measured."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor, nn
from torch.nn import functional

from peg_core.layers.peg_conv import PEGConv
from peg_core.models.decoders import LinearHead, StructuralHead
from peg_core.models.link_predictor import LinkPredictor, ModelSpec
from peg_core.models.message_graph import MessageGraph


class PEG(LinkPredictor):
    """A stack of PEG layers with a rotation-invariant head.

    Preset ``best``: gate on the distance, ReLU between layers, linear residual,
    dropout, structural head. Preset ``faithful``: the authors' code (no psi, gate on the
    squared distance, linear head).
    """

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        best = spec.preset == "best"
        self.squared_distances = not best
        self.input_dropout = 0.3 if best else 0.0
        self.dropout = 0.5 if best else 0.0
        widths = [spec.in_channels] + [spec.hidden] * spec.layers
        self.layers = nn.ModuleList(
            PEGConv(before, after, num_distances=spec.num_encodings, residual=best)
            for before, after in pairwise(widths)
        )
        self.head = (
            StructuralHead(spec.hidden, spec.num_encodings, dropout=self.dropout)
            if best
            else LinearHead(spec.num_encodings)
        )

    def embed_layer(
        self, layer: int, state: Tensor | tuple[Tensor, Tensor], messages: MessageGraph
    ) -> Tensor:
        if self.training and not isinstance(state, tuple):
            state = functional.dropout(state, self.dropout if layer else self.input_dropout)
        out: Tensor = self.layers[layer](
            state, messages.edge_index, messages.normalisation, messages.distances
        )
        last = layer == len(self.layers) - 1
        return out if last or self.spec.preset != "best" else out.relu()
