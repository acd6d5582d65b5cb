"""Where layers compute in compiled loops, and the switch that turns them off.

Off, layers compute with torch alone, as they do on a GPU: what a GPU would be asked to do can
be tested where there is none. ``PEG_COMPILED_LOOPS=0`` turns them off for a whole process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

VARIABLE = "PEG_COMPILED_LOOPS"

# of the process, not of a thread: steps are prepared and gradients computed in threads
_allowed = os.environ.get(VARIABLE, "1") != "0"


def compiled_loops_apply(device: torch.device, dtype: torch.dtype = torch.float32) -> bool:
    """Whether layers take their compiled loops for values of this kind."""
    return _allowed and device.type == "cpu" and dtype == torch.float32


@contextmanager
def compiled_loops(*, allowed: bool) -> Iterator[None]:
    """Allow the compiled loops or turn them off, for all threads, until the block ends."""
    global _allowed
    before, _allowed = _allowed, allowed
    try:
        yield
    finally:
        _allowed = before
