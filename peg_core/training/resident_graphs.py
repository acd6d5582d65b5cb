"""Whole graphs that stay on a device from step to step."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from peg_core.layers.message_graph import TENSORS
from peg_core.layers.placement import placed
from peg_core.training.graph_view import FullView, Whole

# What the graphs of all folds may take of a device; those beyond it are copied in every step.
MOST_RESIDENT_BYTES = 4 * 2**30


class ResidentGraphs:
    """The training graph without each of its folds, on a device.

    Nothing is dropped to make room: the folds come round and round, and dropping the oldest
    would copy all of them in every epoch.

    Args:
        most_bytes: What they may take together.
    """

    def __init__(self, most_bytes: int = MOST_RESIDENT_BYTES) -> None:
        self.most_bytes, self.used_bytes = most_bytes, 0
        self._kept: dict[tuple[int, torch.device], Whole] = {}
        self._table: tuple[Tensor, Tensor] | None = None

    def whole(self, fold: int, view: FullView, device: torch.device) -> Whole:
        """Features, positions and messages of a view on the device."""
        if device.type == "cpu":
            return view.whole
        if (fold, device) in self._kept:
            return self._kept[fold, device]
        x, positions, messages = view.whole
        shares_table = self._holds(x, device)
        moved = Whole(
            self._table[1] if self._table is not None and shares_table else placed(x, device),
            [placed(z, device) for z in positions],
            messages.to(device),
        )
        size = _bytes([*moved.positions, *(getattr(moved.messages, name) for name in TENSORS)])
        size += 0 if shares_table else _bytes([moved.x])
        if self.used_bytes + size <= self.most_bytes:
            self.used_bytes += size
            self._kept[fold, device] = moved
            self._table = (x, moved.x)
        return moved

    def _holds(self, x: Tensor, device: torch.device) -> bool:
        """Whether another fold reads the same table of features in the same place."""
        if self._table is None:
            return False
        here, there = self._table
        return (
            _values(here).data_ptr() == _values(x).data_ptr()
            and here.shape == x.shape
            and there.device == device
        )


def _bytes(tensors: Sequence[Tensor]) -> int:
    return sum(_values(one).numel() * one.element_size() for one in tensors)


def _values(tensor: Tensor) -> Tensor:
    """What is stored of a tensor; of one in compressed rows the entries alone."""
    return tensor.values() if tensor.layout == torch.sparse_csr else tensor
