"""GraphSAGE."""

from __future__ import annotations

from torch import nn

from peg_core.layers.edge_rule import EdgeRule
from peg_core.layers.pyg_layers import SAGELayer
from peg_core.models.baselines.feature_model import FeatureModel, layer_widths
from peg_core.models.model_spec import ModelSpec


class SAGE(FeatureModel):
    r"""`Inductive Representation Learning on Large Graphs <https://arxiv.org/abs/1706.02216>`_.

    .. math::
        x'_u = \mathrm{ReLU}\Big(W_1 \frac{1}{d_u} \sum_{v \in N(u)} x_v + W_2 x_u + b\Big)
    """

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        self.rule = EdgeRule(normalisation="mean")
        self.layers = nn.ModuleList(SAGELayer(*widths) for widths in layer_widths(spec))
