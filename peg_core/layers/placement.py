"""Copies to a device."""

from __future__ import annotations

import torch
from torch import Tensor


def placed(values: Tensor, device: torch.device) -> Tensor:
    """The same values on a device; themselves where they are there already.

    A GPU fetches pinned memory by itself while this process goes on. Other memory may be
    written or freed before it was fetched, so that copy is waited for.
    """
    whole = values.layout == torch.strided and values.device.type == "cpu"
    fetched = device.type == "cuda" and whole and values.is_pinned()
    return values.to(device, non_blocking=fetched)
