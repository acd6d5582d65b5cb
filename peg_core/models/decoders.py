"""Heads: from the embeddings, geometry and structure of a pair to one logit."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from peg_core.models.pair_geometry import NUM_GEOMETRIC
from peg_core.models.structural_features import NUM_STRUCTURAL


class StructuralHead(nn.Module):
    """An MLP over everything that is known of a pair.

    Shapes:
        first, second: [num_pairs, hidden]; geometry: [num_pairs, 3 * num_encodings];
        structure: [num_pairs, 6]; returns [num_pairs].
    """

    def __init__(self, hidden: int, num_encodings: int, *, width: int = 64, dropout: float) -> None:
        super().__init__()
        inputs = hidden + NUM_GEOMETRIC * num_encodings + NUM_STRUCTURAL
        self.network = nn.Sequential(
            nn.BatchNorm1d(inputs),
            nn.Dropout(dropout),
            nn.Linear(inputs, width),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(width, 1),
        )

    def forward(self, first: Tensor, second: Tensor, geometry: Tensor, structure: Tensor) -> Tensor:
        inputs = torch.cat([first * second, geometry, structure], dim=-1)
        return self.network(inputs).squeeze(-1)


class LinearHead(nn.Module):
    """The authors' head: a linear map of (X_u . X_v, squared distances).

    Shapes as in :class:`StructuralHead`; ``structure`` is not read.
    """

    def __init__(self, num_encodings: int) -> None:
        super().__init__()
        self.linear = nn.Linear(1 + num_encodings, 1)

    def forward(self, first: Tensor, second: Tensor, geometry: Tensor, structure: Tensor) -> Tensor:
        del structure
        inner = (first * second).sum(-1, keepdim=True)
        return self.linear(torch.cat([inner, geometry[:, 1::NUM_GEOMETRIC]], dim=-1)).squeeze(-1)
