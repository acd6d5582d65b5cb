"""Heads: from the embeddings, geometry and structure of a pair to one logit.

Shapes of every head: first, second [num_pairs, hidden]; products [num_pairs, hidden], or half as
many again where links are directed; geometry [num_pairs, 3 *
num_encodings]; structure [num_pairs, 6], or 15 where links are directed; returns [num_pairs].

A directed head gives (u, v) another logit than (v, u). It also reads what u sends times what v
receives: two projections of an embedding, which are its halves. The last layer of every model
ends in a linear map, so halves can become any two projections, and rows are read once.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn

from peg_core.kernels.pair_geometry import NUM_GEOMETRIC
from peg_core.models.structural_features import num_structural


def num_products(hidden: int, *, directed: bool) -> int:
    """Columns of :meth:`Head.products`."""
    return hidden + (hidden // 2 if directed else 0)


class Head(nn.Module):
    """Base of the heads; ``reads_structure`` says whether ``structure`` matters to it.

    Args:
        hidden: Width of an embedding.
        num_encodings: Positions per node that are read; 0: the geometry has no columns.
        dropout: Share of the values dropped while training.
        width: Of the hidden layer, where there is one.
        directed: Whether the order of the ends matters.
    """

    reads_structure: ClassVar[bool] = False

    def __init__(
        self,
        hidden: int,
        num_encodings: int,
        *,
        dropout: float,
        width: int,
        directed: bool = False,
    ) -> None:
        del dropout, width
        super().__init__()
        self.hidden, self.num_encodings = hidden, num_encodings
        self.directed = directed

    def forward(self, first: Tensor, second: Tensor, geometry: Tensor, structure: Tensor) -> Tensor:
        return self.combine(self.products(first, second), geometry, structure)

    @abstractmethod
    def combine(self, products: Tensor, geometry: Tensor, structure: Tensor) -> Tensor:
        """The logits from what :meth:`products` gives in place of the embeddings, [num_pairs]."""

    def products(self, first: Tensor, second: Tensor) -> Tensor:
        """The Hadamard product, and where links are directed that of halves crosswise."""
        if not self.directed:
            return first * second
        half = first.shape[-1] // 2
        crossed = first[:, :half] * second[:, half : 2 * half]
        return torch.cat([first * second, crossed], dim=-1)


class StructuralHead(Head):
    """An MLP over everything that is known of a pair: Hadamard product, geometry, structure."""

    reads_structure = True

    def __init__(
        self,
        hidden: int,
        num_encodings: int,
        *,
        dropout: float,
        width: int,
        directed: bool = False,
    ) -> None:
        super().__init__(hidden, num_encodings, dropout=dropout, width=width, directed=directed)
        inputs = num_products(hidden, directed=directed) + NUM_GEOMETRIC * num_encodings
        inputs += num_structural(directed=directed)
        self.network = nn.Sequential(
            nn.BatchNorm1d(inputs),
            nn.Dropout(dropout),
            nn.Linear(inputs, width),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(width, 1),
        )

    def combine(self, products: Tensor, geometry: Tensor, structure: Tensor) -> Tensor:
        inputs = torch.cat([products, geometry, structure], dim=-1)
        return self.network(inputs).squeeze(-1)


class LinearHead(Head):
    """The authors' head: a linear map of (X_u . X_v, squared distances).

    Where links are directed, the first half of X_u times the second half of X_v is one more.

    It starts as the inner product less the squared distances: from a negative first weight,
    training would have to place linked nodes opposite to each other, and does not get far.
    """

    def __init__(
        self,
        hidden: int,
        num_encodings: int,
        *,
        dropout: float,
        width: int,
        directed: bool = False,
    ) -> None:
        super().__init__(hidden, num_encodings, dropout=dropout, width=width, directed=directed)
        self.linear = nn.Linear(1 + directed + num_encodings, 1)
        with torch.no_grad():
            self.linear.weight.fill_(-1.0)
            self.linear.weight[0, : 1 + directed] = 1.0
            self.linear.bias.zero_()

    def combine(self, products: Tensor, geometry: Tensor, structure: Tensor) -> Tensor:
        del structure
        sums = [products[:, : self.hidden].sum(-1, keepdim=True)]
        if self.directed:
            sums.append(products[:, self.hidden :].sum(-1, keepdim=True))
        return self.linear(torch.cat([*sums, geometry[:, 1::NUM_GEOMETRIC]], dim=-1)).squeeze(-1)


class CosineHead(Head):
    """The inner product over a fixed temperature; models with it scale embeddings to length 1.

    Without parameters: what is learned with a softmax over cosines is all in the embeddings.
    A cosine has no direction: (u, v) and (v, u) get the same logit here also where links have.
    """

    scale: ClassVar[float] = 1 / 0.15

    def forward(self, first: Tensor, second: Tensor, geometry: Tensor, structure: Tensor) -> Tensor:
        del geometry, structure
        return self.scale * (first * second).sum(-1)

    def combine(self, products: Tensor, geometry: Tensor, structure: Tensor) -> Tensor:
        del geometry, structure
        return self.scale * products[:, : self.hidden].sum(-1)


class DotHead(Head):
    """The inner product of two embeddings and nothing else, as auto-encoders of graphs decode.

    Where links are directed, the first half of one times the second half of the other is added.
    """

    def combine(self, products: Tensor, geometry: Tensor, structure: Tensor) -> Tensor:
        del geometry, structure
        return products.sum(-1)


class MLPHead(Head):
    """A network over the Hadamard product and the geometry, beside a linear map of them.

    Without the linear map every hidden unit can fall silent on all pairs that look like links:
    they then share one score, no gradient parts them, and a ranking among them is chance.
    """

    def __init__(
        self,
        hidden: int,
        num_encodings: int,
        *,
        dropout: float,
        width: int,
        directed: bool = False,
    ) -> None:
        super().__init__(hidden, num_encodings, dropout=dropout, width=width, directed=directed)
        inputs = num_products(hidden, directed=directed) + NUM_GEOMETRIC * num_encodings
        self.network = nn.Sequential(
            nn.Linear(inputs, width), nn.ReLU(), nn.Dropout(dropout), nn.Linear(width, 1)
        )
        self.straight = nn.Linear(inputs, 1, bias=False)

    def combine(self, products: Tensor, geometry: Tensor, structure: Tensor) -> Tensor:
        del structure
        inputs = torch.cat([products, geometry], dim=-1)
        return (self.network(inputs) + self.straight(inputs)).squeeze(-1)


class BranchHead(Head):
    """Hadamard product and structure, each in a branch of its own; a linear map of their sum.

    A branch is a linear map, scaled to the same spread for every pair, then rectified: neither can
    drown the other, whatever the scale of its inputs. The scaling has no shift of its own, so that
    it can be taken out of the rectifier: kernels need two sums a branch.
    """

    reads_structure = True
    reads_geometry: ClassVar[bool] = False

    def __init__(
        self,
        hidden: int,
        num_encodings: int,
        *,
        dropout: float,
        width: int,
        directed: bool = False,
    ) -> None:
        super().__init__(hidden, num_encodings, dropout=dropout, width=width, directed=directed)
        inputs = [num_products(hidden, directed=directed), num_structural(directed=directed)]
        if self.reads_geometry:
            inputs.append(NUM_GEOMETRIC * num_encodings)
        self.branches = nn.ModuleList(
            nn.Sequential(nn.Linear(count, width), nn.LayerNorm(width, bias=False), nn.ReLU())
            for count in inputs
        )
        self.dropout = nn.Dropout(dropout)
        self.last = nn.Linear(width, 1)

    def combine(self, products: Tensor, geometry: Tensor, structure: Tensor) -> Tensor:
        parts = [products, structure, geometry]
        read = zip(self.branches, parts, strict=False)
        total = torch.stack([branch(part) for branch, part in read]).sum(0)
        return self.last(self.dropout(total)).squeeze(-1)


class PlacedBranchHead(BranchHead):
    """The same with a third branch, for the geometry."""

    reads_geometry = True


HEADS: dict[str, type[Head]] = {
    "dot": DotHead,
    "inner_product": LinearHead,
    "cosine": CosineHead,
    "mlp": MLPHead,
    "structural": StructuralHead,
    "branches": BranchHead,
    "placed_branches": PlacedBranchHead,
}
