"""GAT, the graph attention network."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from peg_core.layers.edge_rule import EdgeRule
from peg_core.layers.pyg_layers import GATLayer
from peg_core.models.baselines.feature_model import FeatureModel, attention_heads, layer_widths
from peg_core.models.model_spec import ModelSpec


class GAT(FeatureModel):
    r"""`Graph Attention Networks <https://arxiv.org/abs/1710.10903>`_, four heads side by side.

    .. math::
        x'_u = \mathrm{ELU}\Big(\big\Vert_h \sum_{v \in N(u) \cup \{u\}}
        \alpha^h_{uv} W_h x_v + b\Big)

    There are fewer heads where `hidden` cannot be shared among four.
    """

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        self.rule = EdgeRule(normalisation="mean")  # its weights are not read
        heads = attention_heads(spec)
        self.layers = nn.ModuleList(GATLayer(*widths, heads=heads) for widths in layer_widths(spec))

    def rectify(self, out: Tensor) -> Tensor:
        """ELU, as its authors do."""
        return functional.elu(out)
