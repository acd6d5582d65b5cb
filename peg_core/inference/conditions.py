"""What may be recommended: nodes that are allowed, pairs that are not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.integer[Any]]
Keys = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Conditions:
    """Which pairs may be recommended, beside those that are no known links.

    Args:
        allowed: Which nodes may be, [num_nodes]; None: all.
        excluded: Pairs that may not be, as :func:`pair_keys`, sorted.
    """

    allowed: npt.NDArray[np.bool_] | None = None
    excluded: Keys | None = None

    def permit(
        self, source: IntArray, target: IntArray, candidate: IntArray, *, num_nodes: int
    ) -> npt.NDArray[np.bool_]:
        """Which pairs may be recommended, [num_pairs]; ``candidate`` is the end on the list."""
        permitted = np.ones(len(candidate), dtype=np.bool_)
        if self.allowed is not None:
            permitted &= self.allowed[candidate]
        if self.excluded is not None and len(self.excluded):
            keys = pair_keys(source, target, num_nodes=num_nodes)
            place = np.searchsorted(self.excluded, keys).clip(max=len(self.excluded) - 1)
            permitted &= self.excluded[place] != keys
        return permitted


ANYTHING = Conditions()


def pair_keys(source: IntArray, target: IntArray, *, num_nodes: int) -> Keys:
    """One number a pair, [num_pairs]."""
    keys: Keys = source.astype(np.int64) * num_nodes + target
    return keys
