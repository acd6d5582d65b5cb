"""What training makes smaller."""

from __future__ import annotations

from collections.abc import Callable

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


OBJECTIVES: dict[str, Callable[[Tensor, int], Tensor]] = {
    "bce": binary_cross_entropy,
    "auc": pairwise_ranking,
    "auc_squared": squared_ranking,
}
