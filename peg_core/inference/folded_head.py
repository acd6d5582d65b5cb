"""A head as plain arrays, so that a kernel can apply it to pairs one tile at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import nn

from peg_core.kernels.pair_geometry import NUM_GEOMETRIC
from peg_core.models.heads import (
    CosineHead,
    DotHead,
    LinearHead,
    MLPHead,
    StructuralHead,
    num_products,
)
from peg_core.models.structural_features import num_structural

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class FoldedHead:
    """``logit = outer . relu(inner inputs + bias) + offset``, or without the hidden layer linear.

    ``inputs`` is what every head reads of a pair, in this order: the product of the two
    embeddings [hidden], where links are directed that of their halves crosswise [hidden // 2],
    the geometry [3 * num_encodings], the structure [6, or 15 where links are directed].

    Args:
        inner: [num_inputs, width]; width 1 for a linear head.
        bias: [width].
        outer: [width]; empty for a linear head.
        offset: Added to the logit.
        directed: Whether the order of the ends matters.
    """

    inner: FloatArray
    bias: FloatArray
    outer: FloatArray
    offset: float
    directed: bool = False

    @property
    def is_linear(self) -> bool:
        return not len(self.outer)

    @property
    def reads_structure(self) -> bool:
        return bool(self.inner[-self._structural :].any())

    def reads_positions(self, hidden: int) -> bool:
        start = num_products(hidden, directed=self.directed)
        return bool(self.inner[start : -self._structural].any())

    @property
    def _structural(self) -> int:
        return num_structural(directed=self.directed)

    def with_hidden_layer(self) -> FoldedHead:
        """The same logits; a linear map is the difference of two hidden units."""
        if not self.is_linear:
            return self
        inner = np.concatenate([self.inner, -self.inner], axis=1)
        signs = np.array([1, -1], np.float32)
        return FoldedHead(inner, np.zeros(2, np.float32), signs, self.offset, self.directed)


def fold_head(head: nn.Module, *, hidden: int, num_encodings: int) -> FoldedHead | None:
    """The arrays of a head in evaluation mode, or None where it is of another kind.

    A head that reads no geometry has zeros for it.
    """
    fold = FOLDS.get(type(head))
    return None if fold is None or head.training else fold(head, hidden, num_encodings)


def _fold_linear(head: Any, hidden: int, num_encodings: int) -> FoldedHead:
    weights, directed = _array(head.linear.weight)[0], head.directed
    inner = np.zeros((_num_inputs(hidden, num_encodings, directed), 1), dtype=np.float32)
    start = num_products(hidden, directed=directed)
    inner[:hidden] = weights[0]
    inner[hidden:start] = weights[int(directed)]  # of no row where links have no direction
    for encoding in range(head.num_encodings):
        inner[start + NUM_GEOMETRIC * encoding + 1] = weights[1 + directed + encoding]
    nothing, bias = np.zeros(0, dtype=np.float32), np.zeros(1, np.float32)
    return FoldedHead(inner, bias, nothing, head.linear.bias.item(), directed)


def _fold_cosine(head: Any, hidden: int, num_encodings: int) -> FoldedHead:
    inner = np.zeros((_num_inputs(hidden, num_encodings, head.directed), 1), dtype=np.float32)
    inner[:hidden] = head.scale
    nothing, bias = np.zeros(0, np.float32), np.zeros(1, np.float32)
    return FoldedHead(inner, bias, nothing, 0.0, head.directed)


def _fold_dot(head: Any, hidden: int, num_encodings: int) -> FoldedHead:
    inner = np.zeros((_num_inputs(hidden, num_encodings, head.directed), 1), dtype=np.float32)
    inner[: num_products(hidden, directed=head.directed)] = 1
    nothing, bias = np.zeros(0, np.float32), np.zeros(1, np.float32)
    return FoldedHead(inner, bias, nothing, 0.0, head.directed)


def _fold_structural(head: Any, hidden: int, num_encodings: int) -> FoldedHead:
    """The normalisation of the inputs becomes part of the first linear map."""
    norm, first, last = head.network[0], head.network[2], head.network[5]
    scale = _double(norm.weight) / np.sqrt(_double(norm.running_var) + norm.eps)
    shift = _double(norm.bias) - _double(norm.running_mean) * scale
    inner = _double(first.weight)  # [width, num_inputs]
    scaled = (inner * scale).T
    if not head.num_encodings:
        unread = np.zeros((NUM_GEOMETRIC * num_encodings, scaled.shape[1]))
        start = num_products(hidden, directed=head.directed)
        scaled = np.concatenate([scaled[:start], unread, scaled[start:]])
    return FoldedHead(
        np.ascontiguousarray(scaled, dtype=np.float32),
        (_double(first.bias) + inner @ shift).astype(np.float32),
        _array(last.weight)[0],
        last.bias.item(),
        head.directed,
    )


def _fold_mlp(head: Any, hidden: int, num_encodings: int) -> FoldedHead:
    """The structure has no weight; a linear map is the difference of two more hidden units."""
    first, last, straight = head.network[0], head.network[3], _array(head.straight.weight)
    rows = _num_inputs(hidden, num_encodings, head.directed)
    inner = np.zeros((rows, len(first.bias) + 2), dtype=np.float32)
    read = np.concatenate([_array(first.weight), straight, -straight]).T
    inner[: len(read)] = read
    return FoldedHead(
        inner,
        np.append(_array(first.bias), np.zeros(2, np.float32)),
        np.append(_array(last.weight)[0], np.array([1, -1], np.float32)),
        last.bias.item(),
        head.directed,
    )


def _num_inputs(hidden: int, num_encodings: int, directed: bool) -> int:
    read = num_products(hidden, directed=directed) + NUM_GEOMETRIC * num_encodings
    return read + num_structural(directed=directed)


def _array(values: Any) -> FloatArray:
    array: FloatArray = values.detach().cpu().numpy().astype(np.float32)
    return array


def _double(values: Any) -> npt.NDArray[np.float64]:
    array: npt.NDArray[np.float64] = values.detach().cpu().numpy().astype(np.float64)
    return array


# Heads that the kernel knows; any other one is applied by torch.
FOLDS: dict[type[nn.Module], Callable[[Any, int, int], FoldedHead]] = {
    LinearHead: _fold_linear,
    CosineHead: _fold_cosine,
    DotHead: _fold_dot,
    MLPHead: _fold_mlp,
    StructuralHead: _fold_structural,
}
