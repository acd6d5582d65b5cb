"""Every link against non-links of its own (OGB's MRR protocol, HeaRT)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class LinkRanks:
    """Where every link stands among its own non-links; the best rank is 1.

    Args:
        above: [num_links] non-links that score higher.
        not_below: [num_links] non-links that score higher or the same.
    """

    above: npt.NDArray[np.int64]
    not_below: npt.NDArray[np.int64]

    @property
    def optimistic(self) -> npt.NDArray[np.float64]:
        """Ranks with ties in favour of the link."""
        return (1 + self.above).astype(np.float64)

    @property
    def pessimistic(self) -> npt.NDArray[np.float64]:
        """Ranks with ties against it."""
        return (1 + self.not_below).astype(np.float64)

    @property
    def mean(self) -> npt.NDArray[np.float64]:
        """The mean of the two, as OGB and HeaRT rank."""
        return (self.optimistic + self.pessimistic) / 2

    @classmethod
    def of_lists(
        cls, positive: FloatArray, chunks: Iterable[tuple[FloatArray, npt.NDArray[np.int64]]]
    ) -> Self:
        """Ranks among lists of any length, whose scores come some at a time.

        Args:
            positive: [num_links] scores.
            chunks: Scores of non-links, and the link that each belongs to.
        """
        above, not_below = np.zeros((2, len(positive)), dtype=np.int64)
        for negative, link in chunks:
            own = positive[link]
            above += np.bincount(link[negative > own], minlength=len(positive))
            not_below += np.bincount(link[negative >= own], minlength=len(positive))
        return cls(above, not_below)


def link_ranks(positive: FloatArray, negative: FloatArray) -> npt.NDArray[np.float64]:
    """Rank of every link among its own non-links, the best is 1, [num_links].

    Ties take the middle of the best and the worst rank that they allow, as OGB does.

    Args:
        positive: [num_links] scores.
        negative: [num_links, count] scores; not a number where a link has fewer non-links.
    """
    above = (negative > positive[:, None]).sum(axis=1)
    not_below = (negative >= positive[:, None]).sum(axis=1)
    return 1 + (above + not_below) / 2


def rank_values(
    ranks: npt.NDArray[np.float64], *, hits: Sequence[int]
) -> dict[str, npt.NDArray[np.float64]]:
    """What each link adds to a metric: 1 / rank, and whether the rank is at most K."""
    values = {"mrr": 1 / ranks}
    values |= {f"hits@{k}": (ranks <= k).astype(np.float64) for k in hits}
    return values


def per_link_metrics(
    positive: FloatArray, negative: FloatArray, *, hits: Sequence[int]
) -> dict[str, float]:
    """MRR and Hits@K of links ranked among their own non-links."""
    values = rank_values(link_ranks(positive, negative), hits=hits)
    return {name: float(value.mean()) for name, value in values.items()}
