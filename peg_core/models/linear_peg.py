"""Linear PEG: one map of the features, then sums over neighbours without weights or rectifiers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from torch import Tensor, nn
from torch.nn import functional

from peg_core.layers.linear_peg_conv import LinearPEGConv
from peg_core.layers.message_graph import MessageGraph
from peg_core.layers.sparse_linear import SparseLinear
from peg_core.models.heads import CosineHead
from peg_core.models.link_predictor import LinkPredictor, State, preset_rule
from peg_core.models.model_spec import ModelSpec


class LinearPEG(LinkPredictor):
    """Features are mapped once, also wide ones that are mostly zeros, and then only added up.

    Among plausible candidates a shallow linear model with a residual ranks better than two layers
    with rectifiers; with ``gated`` PEG's gate weighs the edges. Preset ``ranking`` drops many
    entries of the features and reads pairs in branches of their own (:class:`BranchHead`).
    """

    maps_features = True
    reads_sparse_rows = True

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        self.rule = preset_rule(spec)
        self.map = SparseLinear(spec.in_channels, spec.hidden)
        self.layers = nn.ModuleList(
            LinearPEGConv(
                num_measures=spec.num_encodings,
                edge_dim=spec.relation_columns,
                gated=spec.gated,
                measure=self.rule.measure,
            )
            for _ in range(spec.layers)
        )

    def first_state(
        self, x: Tensor, positions: Sequence[Tensor], nodes: Tensor | None = None
    ) -> Tensor:
        del positions
        mapped: Tensor = self.map(self.features(x, nodes), dropout=self.input_dropout)
        return mapped

    def embed_layer(self, layer: int, state: State, messages: MessageGraph) -> Tensor:
        sources, targets = self.ends(layer, state, messages)
        convolution = cast(LinearPEGConv, self.layers[layer])
        return self.activate(layer, convolution.pass_messages(sources, targets, messages))

    def ends(self, layer: int, state: State, messages: MessageGraph) -> tuple[Tensor, Tensor]:
        """The mapped features with dropout while training; sums of them as they are."""
        if isinstance(state, tuple):
            return state
        if self.training and layer == 0:
            state = functional.dropout(state, self.dropout)
        return state, state[: messages.num_targets]

    def activate(self, layer: int, out: Tensor) -> Tensor:
        """No rectifier; length 1 after the last layer for a cosine."""
        if layer == len(self.layers) - 1 and isinstance(self.head, CosineHead):
            return functional.normalize(out, dim=-1)
        return out
