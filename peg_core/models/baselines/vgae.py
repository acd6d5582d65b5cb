"""VGAE, the variational graph auto-encoder."""

from __future__ import annotations

from typing import ClassVar, cast

import torch
from torch import Tensor, nn

from peg_core.layers.edge_rule import EdgeRule
from peg_core.layers.message_graph import MessageGraph
from peg_core.layers.pyg_layers import GCNLayer
from peg_core.models.baselines.feature_model import FeatureModel, layer_widths
from peg_core.models.link_predictor import State
from peg_core.models.model_spec import ModelSpec


class VGAE(FeatureModel):
    r"""`Variational Graph Auto-Encoders <https://arxiv.org/abs/1611.07308>`_.

    .. math::
        \mu, \log \sigma = \mathrm{GCN}_{\mu, \sigma}(X, A), \qquad
        z_u \sim N(\mu_u, \mathrm{diag}(\sigma_u^2)), \qquad
        p(A_{uv} = 1) = \sigma(a\, z_u^\top z_v + b)

    The paper has :math:`a = 1, b = 0`, which is `head: dot`.

    Training adds the divergence from the standard normal distribution, its mean over the nodes
    divided by their number. In a sampled step these are the nodes of its pairs. Elsewhere the
    embedding of a node is the mean of its distribution.
    """

    # a deviation may grow to exp of this, as in PyG
    largest_log_deviation: ClassVar[float] = 10.0

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec)
        self.rule = EdgeRule(normalisation="symmetric")
        *inner, (before, after) = layer_widths(spec)
        layers = [GCNLayer(*widths, normalize=False) for widths in inner]
        # the mean and the logarithm of the deviation, side by side
        self.layers = nn.ModuleList([*layers, GCNLayer(before, 2 * after, normalize=False)])
        self.noise = 1.0  # what the deviations are multiplied by in training
        self._penalty: Tensor | None = None

    def embed_layer(self, layer: int, state: State, messages: MessageGraph) -> Tensor:
        if layer < len(self.layers) - 1:
            return super().embed_layer(layer, state, messages)
        sources, targets = self.ends(layer, state, messages)
        convolution = cast(GCNLayer, self.layers[layer])
        mean, log_deviation = convolution.pass_messages(sources, targets, messages).chunk(2, dim=-1)
        if not self.training:
            return self.activate(layer, mean)
        log_deviation = log_deviation.clamp(max=self.largest_log_deviation)
        self._penalty = divergence(mean, log_deviation) / max(1, len(mean))
        drawn = torch.randn_like(mean) * log_deviation.exp()
        return self.activate(layer, mean + self.noise * drawn)

    def take_penalty(self) -> Tensor | None:
        """The divergence of the last forward pass, once; a model that holds none can be copied."""
        penalty, self._penalty = self._penalty, None
        return penalty


def divergence(mean: Tensor, log_deviation: Tensor) -> Tensor:
    """Kullback-Leibler divergence from N(0, I), averaged over nodes; both [num_nodes, width]."""
    terms = 1 + 2 * log_deviation - mean.square() - (2 * log_deviation).exp()
    return -0.5 * terms.sum(dim=-1).mean()
