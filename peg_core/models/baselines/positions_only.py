"""Positions alone: what an encoding says without messages and without features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from torch import Tensor, nn

from peg_core.errors import ConfigError
from peg_core.layers.edge_rule import EdgeRule
from peg_core.layers.message_graph import MessageGraph
from peg_core.models.link_predictor import NO_DROPOUT, LinkPredictor, State
from peg_core.models.model_spec import ModelSpec

# Heads that read the geometry of a pair.
PLACED_HEADS = ("inner_product", "mlp", "structural", "placed_branches")


class NoMessages(nn.Module):
    """In the place of a layer: a model has as many as `layers` says."""

    reads_reverse: ClassVar[bool] = False


class PositionsOnly(LinkPredictor):
    r"""A head on the inner products, squared distances and cosines of a pair's positions.

    "LE" and "DW" of `Equivariant and Stable Positional Encoding
    <https://arxiv.org/abs/2203.00199>`_:

    .. math::
        p(A_{uv} = 1) = \sigma\big(\mathrm{MLP}(Z_u^\top Z_v, \|Z_u - Z_v\|^2,
        \cos(Z_u, Z_v))\big)

    The embedding of every node is a single zero.
    """

    maps_features = True

    def __init__(self, spec: ModelSpec) -> None:
        if spec.head not in ("preset", *PLACED_HEADS):
            raise ConfigError(
                f"positions_only scores pairs by their positions, `model.head: {spec.head}` reads "
                f"none; leave it out, or set it to one of {', '.join(PLACED_HEADS)}"
            )
        super().__init__(replace(spec, hidden=1, learned_nodes=0))
        self.rule = EdgeRule(normalisation="mean")
        self.layers = nn.ModuleList(NoMessages() for _ in range(spec.layers))

    @staticmethod
    def preset_dropout(spec: ModelSpec) -> tuple[float, float, float]:
        del spec
        return NO_DROPOUT

    @staticmethod
    def preset_head(spec: ModelSpec) -> str:
        del spec
        return "mlp"

    def first_state(
        self, x: Tensor, positions: Sequence[Tensor], nodes: Tensor | None = None
    ) -> Tensor:
        del positions, nodes
        return x.new_zeros(len(x), 1)

    def embed_layer(self, layer: int, state: State, messages: MessageGraph) -> Tensor:
        return self.ends(layer, state, messages)[1]
