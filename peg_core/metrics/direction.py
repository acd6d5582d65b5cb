"""How often a score says which way a link points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from peg_core.metrics.bootstrap import Bootstrap, Interval

FloatArray = npt.NDArray[np.floating[Any]]

DIRECTION_ACCURACY = "direction_accuracy"


@dataclass
class DirectionCounts:
    """Links whose score is above, the same as, or below that of the reverse pair.

    Symmetric scores, whose pairs all tie, are right half of the time.
    """

    above: int = 0
    equal: int = 0
    below: int = 0

    def add(self, forward: FloatArray, backward: FloatArray) -> None:
        """Count links; a reverse pair that is no number (it is a link itself) is left out.

        Args:
            forward: Scores of links, [num_links].
            backward: Of the same pairs with their ends exchanged.
        """
        self.above += int((forward > backward).sum())
        self.equal += int((forward == backward).sum())
        self.below += int((forward < backward).sum())

    def metrics(self, bootstrap: Bootstrap, *, seed: int) -> dict[str, Interval]:
        """The share that is right, ties counting half; empty where there are no links."""
        counts = np.array([self.above, self.equal, self.below])
        if not counts.any():
            return {}
        found = bootstrap.mean(np.array([1.0, 0.5, 0.0]), counts, seed=seed)
        return {DIRECTION_ACCURACY: found}
