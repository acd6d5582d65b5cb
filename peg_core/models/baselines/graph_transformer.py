"""A transformer whose nodes attend to their neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from peg_core.layers.edge_rule import EdgeRule
from peg_core.layers.message_graph import MessageGraph
from peg_core.layers.pyg_layers import TransformerLayer
from peg_core.models.baselines.feature_model import FeatureModel, attention_heads
from peg_core.models.link_predictor import State
from peg_core.models.model_spec import ModelSpec


class TransformerBlock(nn.Module):
    """Attention over neighbours, then a network on each node; both added to what comes in.

    Args:
        width: Of the nodes.
        heads: Attention heads, side by side in it.
    """

    reads_reverse = False

    def __init__(self, width: int, *, heads: int) -> None:
        super().__init__()
        self.attention = TransformerLayer(width, width, heads=heads)
        self.out = nn.Linear(width, width)
        self.first_norm, self.second_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.network = nn.Sequential(
            nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width)
        )

    def pass_messages(self, sources: Tensor, targets: Tensor, messages: MessageGraph) -> Tensor:
        """[num_sources, width], [num_targets, width] -> [num_targets, width]."""
        attended = self.out(self.attention.pass_messages(sources, targets, messages))
        middle: Tensor = self.first_norm(targets + attended)
        out: Tensor = self.second_norm(middle + self.network(middle))
        return out


class GraphTransformer(FeatureModel):
    r"""`A Generalization of Transformer Networks to Graphs <https://arxiv.org/abs/2012.09699>`_.

    Positions are mapped and added to the mapped features:

    .. math::
        h_u = W x_u + C z_u + c, \qquad
        h'_u = \mathrm{Norm}\Big(h_u + O \big\Vert_k \sum_{v \in N(u)}
        \mathrm{softmax}_v\Big(\frac{(Q_k h_u)^\top K_k h_v}{\sqrt{d}}\Big) V_k h_v\Big), \qquad
        h''_u = \mathrm{Norm}\big(h'_u + \mathrm{MLP}(h'_u)\big)

    In every training step each column of the positions has a random sign: eigenvectors have none
    of their own. It reads coordinates: rotating the positions changes its scores, unlike PEG's.
    Norms are those of a node's own row, so that a node does not depend on the others of a step.
    """

    reads_positions = True
    maps_features = True

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        if len(spec.encoding_widths) != spec.num_encodings:
            raise ValueError(
                f"encoding_widths is {spec.encoding_widths!r}, needed is the width of each of "
                f"the {spec.num_encodings} encodings"
            )
        self.rule = EdgeRule(normalisation="mean")  # its weights are not read
        self.map = nn.Linear(spec.in_channels, spec.hidden)
        self.place = nn.Linear(sum(spec.encoding_widths), spec.hidden, bias=False)
        heads = attention_heads(spec)
        self.layers = nn.ModuleList(
            TransformerBlock(spec.hidden, heads=heads) for _ in range(spec.layers)
        )
        self.last = nn.Linear(spec.hidden, spec.hidden)  # rows of one length tell little apart

    def first_state(
        self, x: Tensor, positions: Sequence[Tensor], nodes: Tensor | None = None
    ) -> Tensor:
        read, coordinates = self.features(x, nodes), torch.cat(list(positions), dim=-1)
        if self.training:
            signs = torch.randint(0, 2, (coordinates.shape[1],), device=coordinates.device)
            coordinates = coordinates * (2 * signs - 1)
            read = functional.dropout(read, self.input_dropout)
        mapped: Tensor = self.map(read) + self.place(coordinates)
        return mapped

    def embed_layer(self, layer: int, state: State, messages: MessageGraph) -> Tensor:
        sources, targets = self.ends(layer, state, messages)
        block = cast(TransformerBlock, self.layers[layer])
        out = block.pass_messages(sources, targets, messages)
        if layer < len(self.layers) - 1:
            return out  # a block ends in its norm
        return self.activate(layer, self.last(out))

    def ends(self, layer: int, state: Any, messages: MessageGraph) -> tuple[Tensor, Tensor]:
        """The features are dropped from before they are mapped, later states here."""
        if isinstance(state, tuple):
            return state
        if self.training and layer:
            state = functional.dropout(state, self.dropout)
        return state, state[: messages.num_targets]
