"""Groups of things of which the first ones are popular."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from peg_core.errors import ConfigError
from peg_core.kernels.generator_kernels import Int64Array


@dataclass(frozen=True)
class RankedGroups:
    """Member i is number ``i // groups`` of group ``i % groups``.

    Args:
        members: Number of members; sizes of groups differ by at most one.
        groups: Number of groups.
        skew: Number r of a group is drawn in proportion to ``(r + 1) ** -skew``.
    """

    members: int
    groups: int
    skew: float

    def draw(self, group: Int64Array, uniform: npt.NDArray[np.float64]) -> Int64Array:
        """A member of each group, [len(group)], where ``uniform`` is in [0, 1)."""
        sizes = self.members // self.groups + (group < self.members % self.groups)
        ranks = np.arange(1, self.members // self.groups + 2)
        reach = np.cumsum(ranks**-self.skew)
        rank = np.searchsorted(reach, uniform * reach[sizes - 1], side="right")
        drawn: Int64Array = group + self.groups * np.minimum(rank, sizes - 1)
        return drawn


def check_skew(name: str, skew: float) -> None:
    """Raise a ConfigError when ``name`` is no skew."""
    if not 0 <= skew <= 2:
        raise ConfigError(
            f"`{name}` is {skew}, needed is a number from 0 (all alike) to 2 (a few have nearly "
            f"everything); change `{name}`"
        )
