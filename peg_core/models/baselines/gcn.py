"""GCN, the graph convolutional network."""

from __future__ import annotations

from torch import nn

from peg_core.layers.edge_rule import EdgeRule
from peg_core.layers.pyg_layers import GCNLayer
from peg_core.models.baselines.feature_model import FeatureModel, layer_widths
from peg_core.models.model_spec import ModelSpec


class GCN(FeatureModel):
    r"""`Semi-Supervised Classification with GCNs <https://arxiv.org/abs/1609.02907>`_, for links.

    .. math::
        X' = \mathrm{ReLU}\big(\hat D^{-1/2} (A + I) \hat D^{-1/2} X W + b\big)
    """

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        self.rule = EdgeRule(normalisation="symmetric")
        self.layers = nn.ModuleList(
            GCNLayer(*widths, normalize=False) for widths in layer_widths(spec)
        )
