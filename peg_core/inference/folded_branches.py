"""A head with branches as plain arrays, for the kernel that applies it to pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import nn

from peg_core.kernels.branch_kernel import Branch
from peg_core.kernels.hidden_layer import pack_columns, pack_values
from peg_core.models.heads import BranchHead

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class FoldedBranches:
    """What :func:`peg_core.kernels.branch_kernel.branch_logits` reads of a head.

    Args:
        branches: Packed weights of each.
        width: Columns of a branch.
        epsilon: Added to the mean square.
        offset: Added to the logit.
    """

    branches: tuple[Branch, ...]
    width: int
    epsilon: np.float32
    offset: np.float32


def fold_branches(head: nn.Module) -> FoldedBranches | None:
    """The arrays of a head in evaluation mode, or None where it is of another kind.

    Directed heads are left to torch.
    """
    if not isinstance(head, BranchHead) or head.training or head.directed:
        return None
    outer = _double(head.last.weight)[0]
    norm: Any = head.branches[0]
    return FoldedBranches(
        tuple(_fold(branch, outer) for branch in head.branches),
        len(outer),
        np.float32(norm[1].eps),
        np.float32(head.last.bias.item()),
    )


def _fold(branch: Any, outer: Matrix) -> Branch:
    """The mean over the columns is taken out of the weights, a sign of the scale goes inside."""
    linear, norm = branch[0], branch[1]
    inner, bias = _double(linear.weight).T, _double(linear.bias)  # [num_inputs, width], [width]
    scale = _double(norm.weight)
    signs = np.where(scale < 0, -1.0, 1.0)
    inner = (inner - inner.mean(axis=1, keepdims=True)) * signs
    bias = (bias - bias.mean()) * signs
    return (
        pack_columns(inner.astype(np.float32)),
        pack_values(bias.astype(np.float32)),
        pack_values((outer * np.abs(scale)).astype(np.float32)),
    )


def _double(values: Any) -> Matrix:
    array: Matrix = values.detach().cpu().numpy().astype(np.float64)
    return array
