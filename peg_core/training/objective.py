"""What training makes smaller."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional


def binary_cross_entropy(logits: Tensor, num_links: int) -> Tensor:
    """Links should have probability 1, the others 0."""
    labels = logits.new_zeros(len(logits))
    labels[:num_links] = 1
    return functional.binary_cross_entropy_with_logits(logits, labels)


def pairwise_ranking(logits: Tensor, num_links: int) -> Tensor:
    """Every link should score above the non-links drawn with it: a smooth form of 1 - AUC."""
    return functional.softplus(-_margins(logits, num_links)).mean()


def squared_ranking(logits: Tensor, num_links: int) -> Tensor:
    """Every link should score 1 above the non-links drawn with it; misses count squared.

    `Pairwise Learning for Neural Link Prediction <https://arxiv.org/abs/2112.02936>`_.
    """
    return (1 - _margins(logits, num_links)).square().mean()


def _margins(logits: Tensor, num_links: int) -> Tensor:
    """How far each link is above its non-links; those of all links come round by round."""
    links, others = logits[:num_links], logits[num_links:]
    rounds = -(-len(others) // len(links))
    return links.repeat(rounds)[: len(others)] - others


def mean_surprise(surprise: Tensor, num_links: int) -> Tensor:
    """Every link should be likely among all that its node might have had."""
    return surprise[:num_links].mean()


def partner_surprise(
    embeddings: Tensor, links: Tensor, partners: Tensor, *, possible: int, temperature: float
) -> Tensor:
    """Minus the logarithm of the softmax share that a link has among its node's partners.

    Similarity is the cosine over a fixed temperature. Where the partners are a sample, each
    stands for ``possible / num_partners`` of them, and the link itself is added.

    Args:
        embeddings: [num_nodes, width].
        links: [2, num_links] rows of (anchor, partner).
        partners: [num_partners] rows; an anchor among them is no partner of itself.
        possible: How many nodes they stand for.
        temperature: Above 0.

    Returns:
        [num_links].
    """
    unit = functional.normalize(embeddings, dim=-1)
    anchors, row = torch.unique(links[0], return_inverse=True)
    scaled = unit.index_select(0, anchors) / temperature  # [num_anchors, width]
    similar = (scaled @ unit.index_select(0, partners).T).float()  # [num_anchors, num_partners]
    similar = similar.masked_fill(anchors[:, None] == partners, -torch.inf)
    whole = similar.logsumexp(dim=1).index_select(0, row)
    partner = unit.index_select(0, links[1])
    own = (scaled.index_select(0, row) * partner).sum(-1).float()
    if len(partners) < possible:
        whole = torch.logaddexp(whole + math.log(possible / len(partners)), own)
    return whole - own


OBJECTIVES: dict[str, Callable[[Tensor, int], Tensor]] = {
    "bce": binary_cross_entropy,
    "auc": pairwise_ranking,
    "auc_squared": squared_ranking,
    "bpr": pairwise_ranking,
    "softmax": mean_surprise,
}
