"""A linear map of rows that are mostly zeros."""

from __future__ import annotations

import math
import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


def sparse_tensor(rows: Any) -> Tensor:
    """A scipy matrix in compressed rows as a tensor in compressed rows; single precision."""
    with warnings.catch_warnings():
        # only its parts are read, no operation on it as a whole
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            torch.as_tensor(rows.indptr, dtype=torch.int64),
            torch.as_tensor(rows.indices, dtype=torch.int64),
            torch.as_tensor(rows.data, dtype=torch.float32),
            size=rows.shape,
            check_invariants=False,
        )


class SparseLinear(nn.Module):
    """``x W + b``, where dropout and product take only the entries that are not zero.

    For dense rows it is a linear map like any other: dropping an entry that is zero changes
    nothing, so both ways are the same map with the same dropout.

    Args:
        in_channels: Width of the rows.
        out_channels: Width of the output.

    Shapes:
        [num_rows, in_channels], dense or in compressed rows -> [num_rows, out_channels].
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        # rows of it are read one by one: [in_channels, out_channels]
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels))
        self.bias = nn.Parameter(torch.zeros(out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """As :class:`torch.nn.Linear` begins."""
        bound = 1 / math.sqrt(max(1, len(self.weight)))
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, x: Tensor, *, dropout: float = 0.0) -> Tensor:
        if x.layout != torch.sparse_csr:
            rows: Tensor = functional.dropout(x, dropout, self.training) @ self.weight + self.bias
            return rows
        values = functional.dropout(x.values(), dropout, self.training)
        summed: Tensor = functional.embedding_bag(
            x.col_indices(),
            self.weight,
            x.crow_indices()[:-1],
            mode="sum",
            per_sample_weights=values.to(self.weight.dtype),
        )
        return summed + self.bias
