"""What the positions of a pair say: rotation-invariant numbers only."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

NUM_GEOMETRIC = 3


def pair_geometry(positions: Sequence[tuple[Tensor, Tensor]]) -> Tensor:
    """Inner product, squared distance and cosine for every encoding.

    Args:
        positions: For each encoding, the positions of both ends, [num_pairs, dimensions].

    Returns:
        [num_pairs, 3 * num_encodings].
    """
    columns = []
    for first, second in positions:
        inner = (first * second).sum(-1)
        squared = (first - second).square().sum(-1)
        lengths = first.norm(dim=-1) * second.norm(dim=-1)
        columns += [inner, squared, inner / lengths.clamp_min(1e-12)]
    return torch.stack(columns, dim=-1)
